"""Fail the n-th write, creation, rename or fsync in a folder, as a full or a broken disk does, for all n."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

FULL, BROKEN = errno.ENOSPC, errno.EIO  # operations starting at the n-th fail; only the n-th fails


class Faults:
    """Counts operations on files in a folder, and fails the n-th."""

    def __init__(self, folder: Path, number: int, code: int) -> None:
        self.folder, self.number, self.code = os.path.realpath(folder), number, code
        self.calls = 0

    @property
    def happened(self) -> bool:
        return self.calls >= self.number

    def concerns(self, place: Any) -> bool:
        """Whether a path or an open file is in the folder, or the folder itself."""
        try:
            named = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.fsdecode(place)
            path = os.path.realpath(named)
        except (OSError, TypeError):
            return False
        if "tensorboard" in path:  # a library's own thread writes there
            return False
        return os.path.commonpath([path, self.folder]) == self.folder if os.path.isabs(path) else False

    def operation(self) -> None:
        self.calls += 1
        if self.calls == self.number or (self.calls > self.number and self.code == FULL):
            raise OSError(self.code, os.strerror(self.code))


@contextmanager
def fault(folder: Path, number: int, code: int) -> Iterator[Faults]:
    """The operating system's functions, with a fault in them."""
    faults = Faults(folder, number, code)
    real = {name: getattr(os, name) for name in ("open", "replace", "rename", "fsync", "fdopen")}
    real_open = builtins.open

    class Raw(io.FileIO):
        def write(self, data: Any) -> int:
            try:
                faults.operation()
            except OSError:
                super().write(memoryview(data)[: len(data) // 2])  # a disk fills up in the middle
                raise
            return super().write(data)

    def os_open(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & os.O_CREAT and faults.concerns(path):
            faults.operation()
        return real["open"](path, flags, *rest, **options)

    def moved(name: str) -> Callable[..., None]:
        def move(source: Any, target: Any, **options: Any) -> None:
            if faults.concerns(target):
                faults.operation()
            real[name](source, target, **options)

        return move

    def fsync(file: Any) -> None:
        if faults.concerns(file if isinstance(file, int) else file.fileno()):
            faults.operation()
        real["fsync"](file)

    def opened(path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if not set(mode) & set("wxa") or options.get("opener") or not faults.concerns(path):  # tempfile has an opener
            return real_open(path, mode, *rest, **options)
        assert "b" in mode, "we write bytes"
        if not isinstance(path, int):
            faults.operation()
        return io.BufferedWriter(Raw(path, mode))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", os_open)
        patch.setattr(os, "replace", moved("replace"))
        patch.setattr(os, "rename", moved("rename"))
        patch.setattr(os, "fsync", fsync)
        patch.setattr(os, "fdopen", opened)
        patch.setattr(io, "open", opened)
        patch.setattr(builtins, "open", opened)
        yield faults


def fail_each(
    folder: Path,
    prepare: Callable[[], object],
    action: Callable[[], object],
    check: Callable[[bool], object],
    code: int,
) -> int:
    """Fail every operation of an action in turn; returns how many there are.

    `prepare` comes before each, and `check` after each: was there an error? Then the action has to work without faults.
    """
    for number in count(1):
        prepare()
        failed = False
        with fault(folder, number, code) as faults:
            try:
                action()
            except OSError:
                failed = True
        check(failed)
        if not faults.happened:
            assert not failed
            return number - 1
        action()
        check(False)
    raise AssertionError
