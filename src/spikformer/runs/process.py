"""What a long command needs of its process: a folder for itself, a clean stop on signals, memory that it keeps."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spikformer.errors import FileError

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # parameters of glibc's mallopt


class FolderLock:
    """A folder for one process alone, until it releases the lock, drops this object or ends, however it ends.

    The file is a POSIX record lock: processes that read ahead do not inherit it. Without such locks, as on Windows and
    on some network file systems, nothing is locked.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / ".claim"
        self._release: Callable[[], object] = lambda: None

    def acquire(self, wait_seconds: float = 0.0) -> None:
        """Lock the folder; ValueError if another process still holds it after `wait_seconds`."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                message = f"{self.path.parent} cannot be written to: {error.strerror}; choose another --output."
                raise type(error)(message) from None
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(file)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    return  # a file system without locks
                if time.monotonic() < deadline:
                    time.sleep(0.2)
                    continue
                problem = "is in use by another command; wait for it, or choose another --output."
                raise FileError(self.path.parent, problem, "busy") from None
            if _is_file(self.path, file):
                self._release = weakref.finalize(self, _unlock, self.path, file)
                return
            os.close(file)  # its owner removed it after we opened it: the next command would create another

    def release(self) -> None:
        self._release()


def _is_file(path: Path, file: int) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _unlock(path: Path, file: int) -> None:
    """Remove the file while it is still locked: whoever opened it before finds its name gone, and opens another."""
    path.unlink(missing_ok=True)
    os.close(file)


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True once Ctrl-C, SIGTERM or SIGHUP arrived; a second one acts as usual.

    Under nohup, which ignores SIGHUP, a run outlives its terminal. Signals reach the main thread only; in any other
    thread the function stays False.
    """
    stopped = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def handle(number: int, _: object) -> None:
        nonlocal stopped
        stopped = True
        signal.signal(number, previous[number])

    numbers: list[int] = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield lambda: stopped
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def keep_freed_memory() -> bool:
    """Tell glibc to reuse large blocks instead of returning them; False where there is no glibc.

    PyTorch asks the C library for every large tensor anew, and glibc hands each one back to the kernel when it is
    freed; the kernel then zeroes the same pages again, which on a CPU can take as long as the arithmetic. The memory
    that a process once needed stays its own until it ends.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def resident_bytes() -> int:
    """Memory that this process holds at present; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
