"""Files on disk: the whole of one or nothing; and where they are kept when the user names no folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HALF = ".half"  # how a name ends while its file is being written; a kill may leave one


def check_is_file(path: Path) -> None:
    """Say in a sentence that there is nothing to read."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """All of it or nothing, see `whole_file`. What need not outlive a power failure is not `durable`, and faster."""
    with whole_file(path, durable=durable) as half:
        half.write_bytes(content)


@contextmanager
def whole_file(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` once all is written.

    A reader never meets half a file, and a failure takes its half away. Only a kill may leave a half beside the path,
    under a name that starts with a dot.
    """
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into; create it first.")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    half = path.with_name(f".{secrets.token_hex(8)}{HALF}")  # short: the name itself may be as long as is allowed
    try:
        yield half
        half.chmod(0o644)  # some libraries write for their owner alone
        if durable:
            with half.open("rb") as file:
                os.fsync(file.fileno())
        os.replace(half, path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise type(error)(f"{path} cannot be written: {error.strerror or error}.") from None
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def cache_folder() -> Path:
    """The user's cache folder for this project; SPIKFORMER_CACHE names another."""
    if named := os.environ.get("SPIKFORMER_CACHE"):
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("spikformer"))
