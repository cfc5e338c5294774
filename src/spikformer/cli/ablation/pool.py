"""Cells of an ablation at work: several at a time, each in a process of its own, stopped calmly and never twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from spikformer.analysis.ablation import CellResult
from spikformer.cli.ablation.cells import Cell
from spikformer.cli.ablation.one_cell import LOG

_PATIENCE_SECONDS = 60.0  # for cells whose command was killed, while they save


class Ended(NamedTuple):
    """A cell's process that is over: with a result, or with what it said instead."""

    cell: Cell
    result: CellResult | None
    code: int
    sentence: str


@dataclass
class _Running:
    cell: Cell
    process: subprocess.Popen[bytes]
    slot: int


class Pool:
    """Runs cells, so many at a time, each in a process of its own."""

    def __init__(self, cells: Sequence[Cell], command: Callable[[Cell], list[str]], jobs: int, lock: IO[bytes]) -> None:
        self._waiting = list(cells)
        self._command = command
        self._jobs = jobs
        self._lock = lock
        self._running: list[_Running] = []

    @property
    def running(self) -> list[Cell]:
        return [each.cell for each in self._running]

    def run(self, stop: Callable[[], bool]) -> Generator[Ended | None]:
        """Cells as they end, and None every now and then; asked to stop, those that run save, and no other starts."""
        try:
            while (self._waiting and not stop()) or self._running:
                if stop():
                    self._waiting.clear()
                    self._end_all()
                    return
                self._fill()
                for each in [each for each in self._running if each.process.poll() is not None]:
                    self._running.remove(each)
                    yield _ended(each)
                yield None
                time.sleep(0.1)
        except KeyboardInterrupt:  # a second one
            for each in self._running:
                each.process.kill()
            raise
        finally:
            self._end_all()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._jobs:
            taken = {each.slot for each in self._running}
            slot = next(slot for slot in range(self._jobs) if slot not in taken)
            cell = self._waiting.pop(0)
            cell.folder.mkdir(parents=True, exist_ok=True)
            with (cell.folder / LOG).open("wb") as log:
                process = subprocess.Popen(
                    self._command(cell),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=os.environ | shares(slot, self._jobs),
                    pass_fds=(self._lock.fileno(),),  # while a cell lives, nobody else works here
                )
            self._running.append(_Running(cell, process, slot))

    def _end_all(self) -> None:
        """A terminal's Ctrl-C has reached them as SIGINT, so this is another signal: two of one kind would not save."""
        for each in self._running:
            each.process.send_signal(signal.SIGTERM)
        for each in self._running:
            each.process.wait()
        self._running.clear()


def _ended(each: _Running) -> Ended:
    code = each.process.returncode
    result = each.cell.result() if code == 0 else None
    lines = (each.cell.folder / LOG).read_text(errors="replace").strip().splitlines()
    said = lines[-1].removeprefix("spikformer train: ") if lines else ""
    if code < 0:
        said = f"It was ended by {signal.Signals(-code).name}, perhaps for lack of memory."
    return Ended(each.cell, result, code, said or f"It ended with {code} and said nothing.")


def shares(slot: int, jobs: int) -> dict[str, str]:
    """Of several at a time, each gets its part of the processors, and one GPU if there are any."""
    if jobs == 1:
        return {}
    import torch

    given = {}
    if "OMP_NUM_THREADS" not in os.environ:
        given["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // jobs))
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = named.split(",") if named else [str(number) for number in range(torch.cuda.device_count())]
    if gpus:
        given["CUDA_VISIBLE_DEVICES"] = gpus[slot % len(gpus)]
    return given


@contextmanager
def locked(folder: Path) -> Iterator[IO[bytes]]:
    """The folder for one command alone; cells of one that was killed are waited for while they save."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+b") as lock:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                lock.seek(0)
                owner = lock.read().decode()
                if _is_alive(owner) or time.monotonic() > deadline:
                    raise ValueError(
                        f"Another command (process {owner}) is at work in {folder}; wait for it, or choose another "
                        "--output."
                    ) from None
                time.sleep(0.2)
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
        yield lock


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
