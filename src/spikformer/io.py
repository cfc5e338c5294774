"""What the package asks of the operating system: atomic files, a cache folder, the processor, memory that stays."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from spikformer.errors import FileError

TEMP_SUFFIX = ".spikformer-tmp"
"""How a name ends while its file is being written; a kill may leave one until the next write to the same path."""
_PAGE_ENDINGS = (".html", ".htm")
_SWEPT = 8  # temporary names of one path that are looked at: as many as may write to it at a time
_MAX_JSON_BYTES = 4 * 2**20  # ten thousand epochs take half of it
_MAX_JSON_LEVELS = 32


def check_is_file(path: Path) -> None:
    """Raise an error that says what is wrong where there is nothing to read."""
    if path.is_dir():
        weights = min(path.glob("*.safetensors"), default=None)  # of a run, the best come first by name
        example = "" if weights is None else f", such as {weights}"
        raise IsADirectoryError(f"{path} is a folder; give the name of a file{example}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")


def read_bounded(path: Path) -> bytes:
    """Content of a small file that anyone may have written; ValueError if it is larger than 4 MiB."""
    check_is_file(path)  # a pipe would be waited for
    with path.open("rb") as file:
        content = file.read(_MAX_JSON_BYTES + 1)
    if len(content) > _MAX_JSON_BYTES:
        raise FileError(path, f"is larger than {_MAX_JSON_BYTES // 2**20} MB.", "too_large")
    return content


def read_json(path: Path) -> Any:
    """Content of a JSON file; ValueError if it is too large, nested too deeply or damaged."""
    try:
        content = json.loads(read_bounded(path))
    except RecursionError:
        raise FileError(path, "is nested too deeply.", "too_large") from None
    level = [content]
    for _ in range(_MAX_JSON_LEVELS):
        inside = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [inner for values in inside for inner in values]
    if level:
        raise FileError(path, "is nested too deeply.", "too_large")
    return content


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """All of it or nothing, see `atomic_file`."""
    with atomic_file(path, durable=durable) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` once all is written. A reader never meets a part of it.

    The mode of a file that is replaced is kept, a new one has the umask's; a symbolic link stays, and its target is
    written. The temporary file is removed on failure; one that a kill left is removed by the next write to the same
    path, unless a live process holds its lock. What need not outlive a power failure is not `durable`, and faster.
    """
    target = _target_of(path)
    try:
        temp, file = _create_temp(target)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with file:
            try:
                with suppress(FileNotFoundError):
                    os.chmod(temp, stat.S_IMODE(os.stat(target).st_mode) & 0o777)
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
                if os.name == "nt":
                    file.close()  # Windows renames no open file
                os.replace(temp, target)
            except BaseException:
                with suppress(OSError):
                    temp.unlink()  # while it is locked, so that the name is still ours
                raise
        if durable:
            _sync_folder(target.parent)
    except OSError as error:
        raise _unwritable(path, error) from None
    for number in range(_SWEPT):
        remove_stale(_temp_name(target, number))


def remove_stale(temp: Path) -> bool:
    """Remove a temporary file that no live process is writing; False if there is one that is being written."""
    try:
        file = os.open(temp, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        # By the time of the lock its writer may have finished, and another may write under the same name.
        stale = _lock(file, wait=False) and os.path.samestat(os.fstat(file), os.stat(temp))
        if stale:
            temp.unlink()
        return stale
    except FileNotFoundError:
        return True
    except OSError:  # a file of another user
        return False
    finally:
        os.close(file)


def check_html_path(path: Path, example: str) -> None:
    """Raise for a place that cannot be written to, before anything is computed; `example` is the name of a file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file, such as {path / example}.")
    if path.suffix.lower() not in _PAGE_ENDINGS:
        raise FileError(path, f"should end in {' or '.join(_PAGE_ENDINGS)}, so that a browser opens it.", "unsupported")
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into; create it first.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}; choose another place.") from None


def umask() -> int:
    """The mode bits that new files of this process lack: a system call that can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def cache_folder() -> Path:
    """The cache folder of this project, by the same rule on every system; SPIKFORMER_CACHE names another."""
    if named := os.environ.get("SPIKFORMER_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "spikformer"


def _target_of(path: Path) -> Path:
    """The file that is to be written: `path`, or what it links to."""
    target = Path(os.path.realpath(path))
    named = target if os.path.islink(path) else path
    if not os.path.isdir(named.parent):
        raise FileNotFoundError(f"There is no folder {named.parent} to write {named.name} into; create it first.")
    if os.path.isdir(target):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if os.path.islink(target):
        raise OSError(f"{path} cannot be written: {os.strerror(errno.ELOOP)}.")
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(f"{path} is not a regular file; give the name of a file.")
    return target


def _create_temp(target: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside the target, under the first name that no live process uses, locked until it is closed."""
    number = 0
    while True:
        temp = _temp_name(target, number)
        try:
            file = os.fdopen(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")
        except FileExistsError:
            number += not remove_stale(temp)
            continue
        _lock(file.fileno(), wait=True)
        if os.fstat(file.fileno()).st_nlink:  # else it was taken for stale before it was locked
            return temp, file
        file.close()


def _lock(file: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed, however its process ends; False where another has it or there are none."""
    try:
        import fcntl
    except ImportError:  # Windows, where temporary files that a kill left stay
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except OSError:
        return False


def _temp_name(target: Path, number: int) -> Path:
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]  # the name itself may be as long as is allowed
    return target.with_name(f".{digest}-{number}{TEMP_SUFFIX}")


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder outlive a power failure, where the system can."""
    if os.name == "nt":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without it
            raise
    finally:
        os.close(file)


def _unwritable(path: Path, error: OSError) -> OSError:
    return type(error)(f"{path} cannot be written: {error.strerror or error}.")


@cache
def processor_name() -> str:
    """As its maker calls it, where the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except (OSError, ValueError):
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
