"""Files that may be gzipped, read in pieces: memory follows what a file holds, never what its header claims."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

LARGEST_RATIO = 256  # LZ4's own limit is 255. Data of real sets is packed to a tenth at best
_SMALL_BYTES = 1 << 24
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 20


def largest_content(packed_bytes: int) -> int:
    """How much a file of that size may unpack to: 16 MiB, and 256 bytes for each of its own.

    Deflate could give 1,032 for each, bzip2 and LZMA any number; who packs that well packs a bomb.
    """
    return _SMALL_BYTES + LARGEST_RATIO * packed_bytes


class ContentError(ValueError):
    """What a file unpacks to is damaged, cut short or more than it may be."""


class _Readable(Protocol):
    def read(self, count: int, /) -> bytes: ...


class Content:
    """The bytes of a decompressor from the front; more than `limit` of them raise ContentError, before they pile up."""

    def __init__(self, file: _Readable, name: object, limit: int) -> None:
        self._file, self._name, self._limit = file, name, limit
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
            raise ContentError(
                f"{self._name} is damaged or cut short after {self._position} unpacked bytes ({error}); get it again."
            ) from None
        self._position += len(piece)
        if self._position > self._limit:
            raise ContentError(f"{self._name} holds more than the {self._limit} bytes that such a file can have.")
        return piece


@contextmanager
def open_content(path: Path, limit: int | None = None) -> Iterator[Content]:
    """A file's bytes, unpacked if its first two say that it is gzipped; at most `largest_content` of them, or fewer."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, expected a file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    most = largest_content(path.stat().st_size)
    most = most if limit is None else min(most, limit)
    with path.open("rb") as raw:
        gzipped = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        if not gzipped:
            yield Content(raw, path, most)
            return
        with gzip.open(raw) as file:
            yield Content(file, path, most)
