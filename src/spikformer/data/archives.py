"""Compressed files and the members of .zip and .tar.gz archives, within bounds that follow from the file's size.

Memory: a piece of a member at a time, and about 2 KB for each entry of a .zip's directory, which takes 46 bytes of the
file at least. Time: that of unpacking `largest_content` once. Nothing that a header claims is believed: a member that
is larger than all of them may be, sparse, or packed by a method without a bound raises ValueError.
"""

from __future__ import annotations

import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

from spikformer.errors import FileError, printable

LARGEST_RATIO = 256  # LZ4's own limit is 255. Data of real sets is packed to a tenth at best
_SMALL_BYTES = 1 << 24
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 20


def largest_content(packed_bytes: int) -> int:
    """How much a file of that size may unpack to: 16 MiB, and 256 bytes for each of its own.

    Deflate could give 1,032 for each, bzip2 and LZMA any number; who packs that well packs a bomb.
    """
    return _SMALL_BYTES + LARGEST_RATIO * packed_bytes


class ContentError(FileError):
    """What a file unpacks to is damaged, cut short or more than it may be."""


class _Readable(Protocol):
    def read(self, count: int, /) -> bytes: ...


class Content:
    """The bytes of a decompressor from the front; more than `limit` of them raise ContentError, before they pile up."""

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
            raise ContentError(
                self._path,
                f"is damaged or cut short after {self._position} unpacked bytes ({error}); get it again.",
                at=self._position,
            ) from None
        self._position += len(piece)
        if self._position > self._limit:
            raise ContentError(
                self._path, f"holds more than the {self._limit} bytes that such a file can have.", "too_large"
            )
        return piece


@contextmanager
def open_content(path: Path, limit: int | None = None) -> Iterator[Content]:
    """A file's bytes, unpacked if its first two say that it is gzipped; at most `largest_content` of them, or fewer."""
    if path.is_dir():
        raise FileError(path, "is a folder, expected a file.", "foreign")
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


_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile unpacks the others without a limit
_NAME_TYPES = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME)
_NAME_BYTES = 1 << 13  # of a long name, or a header that holds one
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    OverflowError,
)


class Member(NamedTuple):
    """One file of an archive, or something else under a name (a link, a device)."""

    name: str
    size: int
    is_file: bool
    open: Callable[[], IO[bytes]]


@contextmanager
def archive_errors(path: Path, kind: str = "an archive") -> Iterator[None]:
    """Whatever the standard library raises for a damaged archive, as a ValueError that names it."""
    try:
        yield
    except _DAMAGE as error:
        reason = printable(error) or type(error).__name__
        raise FileError(path, f"is damaged or not {kind} ({reason}); get it again.") from None


def zip_members(path: Path) -> Iterator[Member]:
    """The files of a .zip; their sizes are checked before any is unpacked."""
    with open_zip(path) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename and not entry.is_dir()]
        check_entries(entries, path)
        for entry in entries:
            yield Member(entry.filename, entry.file_size, True, partial(archive.open, entry))


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """A .zip, opened; its directory is read, and may be damaged in any way."""
    try:
        archive = zipfile.ZipFile(path)
    except ValueError as error:  # a name that is not UTF-8, a place before the file's beginning
        raise zipfile.BadZipFile(str(error)) from None
    with archive:
        yield archive


def check_entries(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """What entries claim, which is also what zipfile stops at, must fit the size of the whole file."""
    if odd := [entry for entry in entries if entry.compress_type not in _METHODS]:
        raise FileError(
            path,
            f": {printable(odd[0].filename)} is packed by method {odd[0].compress_type}, expected 0 or 8 "
            "(deflate); pack it again.",
            "unsupported",
            at=odd[0].filename,
        )
    _check_size(sum(entry.file_size for entry in entries), path)


def tar_members(path: Path, limit: int | None = None) -> Iterator[Member]:
    """The members of a .tar or .tar.gz, in one pass; each is to be read before the next one is asked for."""
    with (
        open_content(path, limit) as content,
        tarfile.open(fileobj=cast(IO[bytes], content), mode="r|", bufsize=1 << 16, tarinfo=_TarInfo) as archive,
    ):
        while (member := _next(archive)) is not None:
            _check_size(member.size, path, limit)
            yield Member(member.name, member.size, member.isreg(), partial(_extract, archive, member))
            archive.members.clear()  # type: ignore[attr-defined]  # every header seen so far would be kept
        # A damaged header ends the archive for tarfile; and the checksum of a gzip comes last.
        while rest := cast(IO[bytes], archive.fileobj).read(1 << 20):
            if rest.strip(b"\0"):
                raise tarfile.ReadError("a header is damaged")


def _next(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
    try:
        return archive.next()
    except ContentError:
        raise
    except ValueError as error:
        raise tarfile.ReadError(str(error)) from None


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member)
    if file is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    return file


class _TarInfo(tarfile.TarInfo):
    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Tarfile's hook for every header, before it reads what belongs to it."""
        if self.type in _NAME_TYPES and self.size > _NAME_BYTES:
            raise tarfile.ReadError(f"a name takes {self.size} bytes")
        if self.type == tarfile.XGLTYPE and archive.pax_headers:
            raise tarfile.ReadError("it has several global headers")
        member = super()._proc_member(archive)  # type: ignore[misc]
        if member.size < 0:
            raise tarfile.ReadError(f"a member has {member.size} bytes")
        if member.issparse():
            raise tarfile.ReadError("a member is sparse")
        return member


def _check_size(claimed: int, path: Path, limit: int | None = None) -> None:
    most = largest_content(path.stat().st_size)
    most = most if limit is None else min(most, limit)
    if claimed > most:
        raise FileError(
            path, f"claims to hold {claimed} bytes, more than the {most} that such a file can have.", "too_large"
        )
