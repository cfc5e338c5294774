"""The only place that imports the native core and builds programs in it: instruction sets, threads, forks."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import fields
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args
from weakref import WeakSet

from spikformer.engine.ops import OP_NAMES, NeuronConstants
from spikformer.engine.program import Program
from spikformer.errors import FieldError
from spikformer.validation import is_integer

if TYPE_CHECKING:
    from spikformer import _native

Mode = Literal["auto", "events", "dense"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""How products are computed, in the order of the native core."""
MOST_THREADS = 1024
INSTRUCTIONS = "SPIKFORMER_INSTRUCTIONS"
"""Environment variable: scalar, neon, avx2, avx512 or amx instead of the best that this machine has."""


def native_core() -> ModuleType:
    try:
        from spikformer import _native
    except ImportError:
        raise ImportError(
            "The engine needs spikformer's native core, which this installation lacks: install spikformer again where "
            "there is a C++ compiler. Everything else works without it.",
            name="spikformer._native",
        ) from None
    return _native


def chosen_instructions() -> str:
    return os.environ.get(INSTRUCTIONS) or "best"


def usable_threads() -> int:
    """OMP_NUM_THREADS if it is a number above 0, else the cores that this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # a list is of nested loops: the first counts
    if wanted.isascii() and wanted.isdecimal() and (threads := int(wanted[:9])) > 0:
        return min(threads, MOST_THREADS)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, cpu_quota(), MOST_THREADS)


def checked_threads(num_threads: Any) -> int:
    if not is_integer(num_threads) or not 1 <= num_threads <= MOST_THREADS:
        message = f"num_threads must be an integer from 1 to {MOST_THREADS}, got {num_threads!r}."
        raise FieldError("num_threads", message)
    return int(num_threads)


def cpu_quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Cores that the control groups (cgroup v2) of this process allow, as a container's limit, rounded up."""
    try:
        lines = own.read_text().splitlines()
    except (OSError, ValueError):
        lines = []
    group = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    parts, cores = Path(group).parts, MOST_THREADS
    for depth in range(len(parts) + 1):
        try:
            quota, period = root.joinpath(*parts[:depth], "cpu.max").read_text().split()
            cores = min(cores, max(1, math.ceil(int(quota) / int(period))))
        except (OSError, ValueError, ArithmeticError):  # no such file, or "max": no limit
            continue
    return cores


_call_locks: WeakSet[Any] = WeakSet()
_forking = threading.RLock()
_held: list[list[Any]] = []


def call_lock() -> Any:
    """A lock for the calls of one engine. A fork waits for it, so that no child inherits a call half done.

    Reentrant, because a signal handler may fork in the middle of a call of its own thread.
    """
    lock = threading.RLock()
    with _forking:
        _call_locks.add(lock)
    return lock


def _before_fork() -> None:
    _forking.acquire()
    held: list[Any] = []
    _held.append(held)
    for lock in list(_call_locks):
        lock.acquire()
        held.append(lock)


def _after_fork() -> None:
    for lock in _held.pop():
        lock.release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def build_engine(program: Program, num_threads: int, instructions: str) -> _native.Engine:
    """The program op by op in the native core, its weights packed for an instruction set."""
    native = native_core().Program(instructions, program.in_channels)
    for op in program.ops:
        scalars = [getattr(op, field.name) for field in fields(op) if field.name not in ("name", "inputs")]
        scalars = [value.as_tuple() if isinstance(value, NeuronConstants) else value for value in scalars]
        name = OP_NAMES[type(op)]
        getattr(native, f"{name}_" if iskeyword(name) else name)(op.name, *op.inputs, *scalars)
    return native.engine(num_threads)
