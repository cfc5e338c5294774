"""Archives as published, unpacked once beside themselves: all of it or nothing, and nothing outside."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import track


def unpack(archive: Path, folder: Path, endings: tuple[str, ...], kept_parts: int = 1) -> Path:
    """The folder with those files of a .zip or .tar.gz that have such an ending, unpacked if it is not there yet.

    Of a member's path only the last parts are kept (1: its name, 2: its folder, too), so that it cannot land anywhere
    else; links and devices are left out. The folder appears when it is whole: a run that is killed leaves none.
    """
    if folder.is_dir():
        return folder
    if not archive.is_file():
        raise FileNotFoundError(f"There is no file {archive}.")
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        found = 0
        for name, open_member in _members(archive):
            if name.lower().endswith(endings):
                _write(partial / _place(name, kept_parts), open_member)
                found += 1
        if not found:
            raise ValueError(f"{archive} holds no file that ends in {', '.join(endings)}; is it another archive?")
        partial.chmod(0o755)  # mkdtemp's folders are for their owner alone
        partial.rename(folder)
    except FileExistsError as error:
        raise ValueError(f"{archive} holds {Path(error.filename).name} twice; which is meant?") from None
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{archive} is damaged or not an archive ({error}); get it again.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _place(name: str, kept_parts: int) -> Path:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return Path(*parts[-kept_parts:])


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes] | None]]]:
    """Name and opener of every regular file, with a bar for people: these archives have gigabytes."""
    title, console = f"Unpacking {archive.name}, once", Console(stderr=True)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as content:
            for entry in track(content.infolist(), title, console=console, transient=True):
                if not entry.is_dir():
                    yield entry.filename, partial(content.open, entry)
        return
    with tarfile.open(archive, "r:*") as content:
        for member in track(content, title, console=console, transient=True, total=None):
            if member.isreg():
                yield member.name, partial(content.extractfile, member)


def _write(path: Path, open_member: Callable[[], IO[bytes] | None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = open_member()
    assert source is not None, "a regular member has content"
    with source, path.open("xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
