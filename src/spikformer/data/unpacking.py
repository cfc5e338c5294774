"""Archives as published: unpacked once beside themselves, or their files read by name where they are.

Unpacking leaves all of an archive or nothing, and nothing outside its folder; reading by name writes nothing.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import track

from spikformer.data.archives import Member, archive_errors, tar_members, zip_members
from spikformer.errors import FileError, printable
from spikformer.io import umask

_STALE_SECONDS = 86_400


def unpack(archive: Path, folder: Path, endings: tuple[str, ...], kept_parts: int = 1) -> Path:
    """The folder with those files of a .zip or .tar.gz that have such an ending, unpacked if it is not there yet.

    Of a member's path only the last parts are kept (1: its name, 2: its folder, too), so that it cannot land anywhere
    else; links, devices and hidden files are left out. The folder appears when it is whole: a run that is killed
    leaves none, and of two that unpack at a time one is kept.

    Takes at most 16 MiB and 256 times the archive's size of disk, and a few megabytes of memory (see `archives`).
    """
    if folder.is_dir():
        return folder
    if not archive.is_file():
        raise FileNotFoundError(f"There is no file {archive}.")
    _sweep(folder)
    half = Path()
    try:
        half = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        with archive_errors(archive):
            _fill(half, archive, endings, kept_parts)
        half.chmod(0o777 & ~umask())  # mkdtemp's folders are for their owner alone
        _put_in_place(half, folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"{archive} cannot be unpacked into {folder.parent}: {reason}; unpack it elsewhere.") from None
    finally:
        if half.name:
            shutil.rmtree(half, ignore_errors=True)
    return folder


def _fill(half: Path, archive: Path, endings: tuple[str, ...], kept_parts: int) -> None:
    found = 0
    for member in _members(archive):
        parts = [part for part in member.name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if not member.is_file or not parts or parts[-1].startswith(".") or not parts[-1].lower().endswith(endings):
            continue
        kept = parts[-kept_parts:]
        if not "".join(kept).isprintable():
            raise FileError(
                archive, f"holds a file with control characters in its name, {printable(kept[-1])}.", "unsafe"
            )
        place = half.joinpath(*kept)
        if place.exists():
            raise FileError(archive, f"holds {place.name} twice; which is meant?", at=place.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        with member.open() as source, place.open("xb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        found += 1
    if not found:
        raise FileError(archive, f"holds no file that ends in {', '.join(endings)}; is it another archive?", "foreign")


def _members(archive: Path) -> Iterable[Member]:
    """All members, with a bar for people: these archives have gigabytes."""
    members = zip_members(archive) if zipfile.is_zipfile(archive) else tar_members(archive)
    title, console = f"Unpacking {archive.name}, once", Console(stderr=True)
    hidden = not console.is_terminal  # in a log, rich would leave empty lines
    return track(members, title, console=console, transient=True, total=None, disable=hidden)


def _put_in_place(half: Path, folder: Path) -> None:
    try:
        half.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster, and its folder is whole
            raise


def _sweep(folder: Path) -> None:
    """Halves that killed runs have left."""
    for half in folder.parent.glob(f".{folder.name}-*"):
        if half.is_dir() and time.time() - half.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(half, ignore_errors=True)


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
                raise FileError(
                    source, f"holds {name} twice, the second as {printable(member.name)}; which is meant?", at=name
                )
            found[name] = _extract(member, source)
    return found


def read_found(file: Path | bytes, name: str) -> bytes:
    """What `find_files` found, as bytes."""
    if isinstance(file, bytes):
        return file
    if file.stat().st_size > _MAX_FILE_BYTES:
        raise FileError(name, f"has {file.stat().st_size} bytes, expected {_MAX_FILE_BYTES} at most.", "too_large")
    return file.read_bytes()


def _extract(member: Member, source: Path) -> bytes:
    place = printable(member.name)
    if not member.is_file:
        raise FileError(source, f": {place} is a link or a device, expected a file.", "unsafe", at=place)
    if member.size > _MAX_FILE_BYTES:
        problem = f"has {member.size} bytes, expected {_MAX_FILE_BYTES} at most."
        raise FileError(source, f": {place} {problem}", "too_large", at=place)
    with member.open() as file:
        content = file.read()
    if len(content) != member.size:
        raise FileError(source, f": {place} is cut short; get the archive again.", "truncated", at=place)
    return content
