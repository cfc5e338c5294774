"""Files by name from a folder or a .tar.gz, read where they are: nothing is unpacked to disk, so no path can hurt."""

from __future__ import annotations

import tarfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, cast

from spikformer.data.images.compressed import open_content

_MAX_FILE_BYTES = 1 << 28  # the largest here, CIFAR-100's training file, has 155 MB
_MAX_ARCHIVE_BYTES = 1 << 29


def find_files(source: Path, wanted: Collection[str]) -> dict[str, Path | bytes]:
    """Those of the wanted files that are there, by name: paths in a folder, contents in an archive."""
    if source.is_dir():
        return {name: source / name for name in wanted if (source / name).is_file()}
    found: dict[str, Path | bytes] = {}
    try:
        # A stream: one pass over the gzip, and not more than the limit of it, whatever the headers say.
        with (
            open_content(source, _MAX_ARCHIVE_BYTES) as content,
            tarfile.open(fileobj=cast(IO[bytes], content), mode="r|", bufsize=1 << 16) as archive,
        ):
            for member in archive:
                name = member.name.rsplit("/", 1)[-1]
                if name not in wanted:
                    continue
                if name in found:
                    raise ValueError(f"{source} holds {name} twice, the second as {member.name!r}; which is meant?")
                found[name] = _extract(archive, member, source)
    except (tarfile.TarError, EOFError, OverflowError) as error:
        raise ValueError(f"{source} is damaged or not a tar archive ({error}); get it again.") from None
    return found


def read_found(file: Path | bytes, name: str) -> bytes:
    """What `find_files` found, as bytes."""
    if isinstance(file, bytes):
        return file
    if file.stat().st_size > _MAX_FILE_BYTES:
        raise ValueError(f"{name} has {file.stat().st_size} bytes, expected {_MAX_FILE_BYTES} at most.")
    return file.read_bytes()


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, source: Path) -> bytes:
    if not member.isreg():
        raise ValueError(f"{source}: {member.name!r} is a link or a device, expected a file.")
    if member.size > _MAX_FILE_BYTES:
        raise ValueError(f"{source}: {member.name!r} has {member.size} bytes, expected {_MAX_FILE_BYTES} at most.")
    file = archive.extractfile(member)
    content = file.read() if file else b""
    if len(content) != member.size:
        raise ValueError(f"{source} is cut short in {member.name!r}; get it again.")
    return content
