"""Archives as published, unpacked once beside themselves: all of it or nothing, and nothing outside."""

from __future__ import annotations

import gzip
import lzma
import shutil
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, cast

from rich.console import Console
from rich.progress import track

from spikformer.disk import umask

_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
_STALE_SECONDS = 86_400


def unpack(archive: Path, folder: Path, endings: tuple[str, ...], kept_parts: int = 1) -> Path:
    """The folder with those files of a .zip or .tar.gz that have such an ending, unpacked if it is not there yet.

    Of a member's path only the last parts are kept (1: its name, 2: its folder, too), so that it cannot land anywhere
    else; links, devices and hidden files are left out. The folder appears when it is whole: a run that is killed
    leaves none, and of two that unpack at a time one is kept.
    """
    if folder.is_dir():
        return folder
    if not archive.is_file():
        raise FileNotFoundError(f"There is no file {archive}.")
    _sweep(folder)
    half = Path()
    try:
        half = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        _fill(half, archive, endings, kept_parts)
        half.chmod(0o777 & ~umask())  # mkdtemp's folders are for their owner alone
        _put_in_place(half, folder)
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{archive} is damaged or not an archive ({reason}); get it again.") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"{archive} cannot be unpacked into {folder.parent}: {reason}; unpack it elsewhere.") from None
    finally:
        if half.name:
            shutil.rmtree(half, ignore_errors=True)
    return folder


def _fill(half: Path, archive: Path, endings: tuple[str, ...], kept_parts: int) -> None:
    found = 0
    for name, open_member in _members(archive):
        parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if not parts or parts[-1].startswith(".") or not parts[-1].lower().endswith(endings):
            continue
        place = half.joinpath(*parts[-kept_parts:])
        if place.exists():
            raise ValueError(f"{archive} holds {place.name} twice; which is meant?")
        _write(place, open_member)
        found += 1
    if not found:
        raise ValueError(f"{archive} holds no file that ends in {', '.join(endings)}; is it another archive?")


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes] | None]]]:
    """Name and opener of every regular file, with a bar for people: these archives have gigabytes."""
    title, console = f"Unpacking {archive.name}, once", Console(stderr=True)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for entry in track(zipped.infolist(), title, console=console, transient=True):
                if not entry.is_dir():
                    yield entry.filename, partial(zipped.open, entry)
        return
    with tarfile.open(archive, "r:*") as packed:
        for member in track(packed, title, console=console, transient=True, total=None):
            if member.isreg():
                yield member.name, partial(packed.extractfile, member)
        # The checksum of a gzip comes last, after what tarfile looks at.
        rest = cast(IO[bytes], packed.fileobj)
        while rest.read(1 << 20):
            pass


def _write(path: Path, open_member: Callable[[], IO[bytes] | None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = open_member()
    assert source is not None, "a regular member has content"
    with source, path.open("xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


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
