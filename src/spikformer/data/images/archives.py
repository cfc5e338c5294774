"""Files by name from a folder or a .tar.gz, read where they are: nothing is unpacked to disk, so no path can hurt."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from spikformer.data.archives import Member, archive_errors, tar_members
from spikformer.vocabulary import printable

_MAX_FILE_BYTES = 1 << 28  # the largest here, CIFAR-100's training file, has 155 MB
_MAX_ARCHIVE_BYTES = 1 << 29


def find_files(source: Path, wanted: Collection[str]) -> dict[str, Path | bytes]:
    """Those of the wanted files that are there, by name: paths in a folder, contents in an archive.

    Of an archive, at most 512 MiB are unpacked, and 16 MiB and 256 times its size; the wanted files are held at once.
    """
    if source.is_dir():
        return {name: source / name for name in wanted if (source / name).is_file()}
    found: dict[str, Path | bytes] = {}
    with archive_errors(source, "a tar archive"):
        for member in tar_members(source, _MAX_ARCHIVE_BYTES):
            name = member.name.rsplit("/", 1)[-1]
            if name not in wanted:
                continue
            if name in found:
                raise ValueError(
                    f"{source} holds {name} twice, the second as {printable(member.name)}; which is meant?"
                )
            found[name] = _extract(member, source)
    return found


def read_found(file: Path | bytes, name: str) -> bytes:
    """What `find_files` found, as bytes."""
    if isinstance(file, bytes):
        return file
    if file.stat().st_size > _MAX_FILE_BYTES:
        raise ValueError(f"{name} has {file.stat().st_size} bytes, expected {_MAX_FILE_BYTES} at most.")
    return file.read_bytes()


def _extract(member: Member, source: Path) -> bytes:
    place = f"{source}: {printable(member.name)}"
    if not member.is_file:
        raise ValueError(f"{place} is a link or a device, expected a file.")
    if member.size > _MAX_FILE_BYTES:
        raise ValueError(f"{place} has {member.size} bytes, expected {_MAX_FILE_BYTES} at most.")
    with member.open() as file:
        content = file.read()
    if len(content) != member.size:
        raise ValueError(f"{place} is cut short; get the archive again.")
    return content
