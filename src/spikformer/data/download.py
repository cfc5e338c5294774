"""Files of a data set, fetched where they are missing and checked; what goes wrong raises a short error message.

Call `download` when files are missing from the folder that is ours (`addresses.data_folder`), never for a folder that
the user named: what lies there is theirs, complete or a sample, with the published checksum or another, and the readers
judge it. Even in our folder a file with a wrong checksum is left alone and named, not overwritten: someone put it
there.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pooch
import requests  # comes with pooch, and its errors come through
import urllib3
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from spikformer.data.addresses import RemoteFile, Source
from spikformer.errors import FileError
from spikformer.io import umask

_CHUNK_BYTES = 1 << 16


def how_to_get(source: Source, folder: Path) -> str:
    """For a person: which files of a set to get, from where, and where to put them."""
    return f"For {source.name}, {_remedy(source, folder)}"


def download(source: Source, folder: Path, *, progress: bool = True, timeout_seconds: float = 30.0) -> list[Path]:
    """All files of a set, fetched where they are missing; those already there are kept.

    A file appears under its name when it is whole and its checksum right, not before. It never takes more of the disk
    than it should, whatever the server sends. The time limit is for the server to say anything, not for the file.
    """
    if not source.files:
        raise FileNotFoundError(f"{source.name} cannot be downloaded by a program: {_remedy(source, folder)}")
    try:
        missing = [file for file in source.files if not _is_there(file, folder)]
        if missing:
            _make_room(missing, folder)
            _fetch_all(missing, folder, progress, timeout_seconds)
    except ConnectionError as error:
        raise ConnectionError(f"{source.name} could not be downloaded ({error}): {_remedy(source, folder)}") from None
    except OSError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error  # pooch adds its own explanation
        raise OSError(
            f"{source.name} could not be saved in {folder} ({cause.strerror or cause}): make the folder usable, "
            "or set SPIKFORMER_CACHE to another."
        ) from None
    return [folder / file.name for file in source.files]


def _remedy(source: Source, folder: Path) -> str:
    missing = [name for name in source.file_names if not os.path.exists(folder / name)] or source.file_names
    them = "it" if len(missing) == 1 else "them"
    arranged = f", {source.arranged}," if source.arranged else ""
    return (
        f"get {', '.join(missing)} from {source.page} and put {them}{arranged} into {folder}, "
        f"or give the folder that has {them} with --data."
    )


def _is_there(file: RemoteFile, folder: Path) -> bool:
    path = folder / file.name
    if not path.is_file():
        return False
    algorithm, _, expected = file.checksum.partition(":")
    found = pooch.file_hash(str(path), alg=algorithm)
    if found != expected:
        raise FileError(
            path,
            f"is not the published file (its {algorithm} is {found}, expected {expected}): move it away to "
            "download it, or give its folder with --data to use it as it is.",
            "foreign",
        )
    return True


def _make_room(files: Sequence[RemoteFile], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = sum(file.size_bytes for file in files), shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(f"it needs {needed / 1e9:.2f} GB, {free / 1e9:.2f} GB are free")


def _fetch_all(files: Sequence[RemoteFile], folder: Path, progress: bool, timeout_seconds: float) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    hidden = not (progress and console.is_terminal)  # in a log, rich would leave empty lines
    bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden)
    with _quiet_pooch(), bars:
        for number, file in enumerate(files, 1):
            title = f"{file.name} ({number} of {len(files)})"
            _fetch(file, folder, _Bar(bars, title, file.size_bytes), timeout_seconds)


def _fetch(file: RemoteFile, folder: Path, bar: _Bar, timeout_seconds: float) -> None:
    """From the first address that has it."""
    reasons = []
    for address in file.addresses:
        host = urlsplit(address).netloc
        try:
            _retrieve(file, address, folder, bar, timeout_seconds)
            return
        except requests.RequestException as error:
            reasons.append(_reason(error, host))
        except ValueError:
            reasons.append(f"what {host} sent is not the file (by its size or checksum)")
        bar.reset()
    raise ConnectionError(", ".join(reasons))


def _retrieve(file: RemoteFile, address: str, folder: Path, bar: _Bar, timeout_seconds: float) -> None:
    def transfer(url: str, output: str, _: object) -> None:
        """What pooch lets write its temporary file; a server that sends more than the file has is cut off."""
        headers = {"Accept-Encoding": "identity"}  # compressed on the way, the bar would count other bytes than arrive
        with (
            requests.get(url, timeout=timeout_seconds, stream=True, headers=headers) as answer,
            open(output, "wb") as out,
        ):
            answer.raise_for_status()
            received = 0
            for piece in answer.iter_content(_CHUNK_BYTES):
                received += len(piece)
                if received > file.size_bytes:
                    raise ValueError(f"more than {file.size_bytes} bytes")
                out.write(piece)
                bar.update(len(piece))
        bar.close()

    path = pooch.retrieve(address, file.checksum, file.name, folder, downloader=transfer)
    os.chmod(path, 0o666 & ~umask())  # pooch's temporary files are for their owner alone


def _reason(error: requests.RequestException, host: str) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{host} answered {error.response.status_code} {error.response.reason}".rstrip()
    cause = error.args[0] if error.args else None  # in mid-file it is no Timeout to requests
    if isinstance(error, requests.Timeout) or isinstance(cause, urllib3.exceptions.TimeoutError):
        return f"{host} did not answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return f"the connection to {host} broke off"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection to {host}"
    return f"no connection to {host}"


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Bar:
    """One file's bar."""

    def __init__(self, progress: Progress, title: str, size_bytes: int) -> None:
        self._progress, self._task = progress, progress.add_task(title, total=size_bytes)

    def update(self, num_bytes: int) -> None:
        self._progress.advance(self._task, num_bytes)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0, visible=True)

    def close(self) -> None:
        self._progress.update(self._task, visible=False)  # not removed: another address may want it
