"""Files that may be gzipped, read in pieces: memory follows what a file holds, never what its header claims."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 20


class _Readable(Protocol):
    def read(self, count: int, /) -> bytes: ...


class Content:
    """A file's bytes from the front, unpacked on the way; after `limit` of them it is refused, so no bomb goes off."""

    def __init__(self, file: _Readable, path: Path, limit: int) -> None:
        self._file, self._path, self._limit = file, path, limit
        self._position = 0

    def read(self, count: int) -> bytes:
        """The next `count` bytes, or as many as there are."""
        pieces = []
        while count > 0 and (piece := self._next(min(count, _PIECE))):
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def _next(self, count: int) -> bytes:
        try:
            piece = self._file.read(count)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{self._path} is damaged or cut short after {self._position} unpacked bytes ({error}); get it again."
            ) from None
        self._position += len(piece)
        if self._position > self._limit:
            raise ValueError(f"{self._path} holds more than the {self._limit} bytes that such a file can have.")
        return piece


@contextmanager
def open_content(path: Path, limit: int) -> Iterator[Content]:
    """Whether it is gzipped is told by its first two bytes, not by its ending."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, expected a file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with path.open("rb") as raw:
        gzipped = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        if not gzipped:
            yield Content(raw, path, limit)
            return
        with gzip.open(raw) as file:
            yield Content(file, path, limit)
