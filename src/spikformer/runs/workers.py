"""Worker processes that train the cells of an ablation, each with its log, stopped together."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event as StopFlag
from pathlib import Path

from spikformer.analysis.ablation import CellResult
from spikformer.runs.bench import engine_latency_ms
from spikformer.runs.cells import Cell
from spikformer.runs.folder import Results, Run
from spikformer.runs.measure import measure_cost
from spikformer.runs.process import keep_freed_memory, stop_on_signal
from spikformer.runs.progress import Event, describe_event
from spikformer.runs.train import train
from spikformer.runs.writer import LOG
from spikformer.training import DivergedError, get_recipe
from spikformer.validation import Accelerator

_WRONG_USE = (ValueError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


@dataclass(frozen=True)
class CellEnded:
    """A cell's process is over: with a result, or with the message it failed with."""

    cell: Cell
    result: CellResult | None
    message: str = ""


@dataclass(frozen=True)
class CellOptions:
    """What a worker needs besides the cell."""

    data: Path | None
    from_weights: Path | None
    teacher: Path | None
    workers: int
    accelerator: Accelerator
    save_minutes: float
    threads: int | None
    gpu: str | None


def run_cells(
    cells: Sequence[Cell], options: Callable[[int], CellOptions], jobs: int, stop: Callable[[], bool]
) -> Generator[CellEnded | list[Cell]]:
    """Cells as they end, and several times a second those that run.

    Every cell has an executor, and so a process, of its own: one that is killed breaks no other, and none inherits
    memory.
    """
    context = multiprocessing.get_context("spawn")
    stopping = context.Event()
    waiting, slots = list(cells), list(range(jobs))
    running: dict[Future[CellResult | None], tuple[Cell, int]] = {}
    with ExitStack() as executors:
        executors.callback(stopping.set)  # before the executors are joined
        try:
            while waiting or running:
                if stop():
                    waiting.clear()
                    stopping.set()
                while waiting and slots:
                    slot, cell = slots.pop(0), waiting.pop(0)
                    executor = executors.enter_context(ProcessPoolExecutor(1, context, _start_worker, (stopping,)))
                    with _without_interrupts():
                        running[executor.submit(_train_cell, cell, options(slot))] = cell, slot
                yield [cell for cell, _ in running.values()]
                for future in wait(running, timeout=0.1, return_when=FIRST_COMPLETED).done:
                    cell, slot = running.pop(future)
                    slots.append(slot)
                    if (ended := _ending(cell, future)) is not None:
                        yield ended
        except KeyboardInterrupt:  # a second one
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _ending(cell: Cell, future: Future[CellResult | None]) -> CellEnded | None:
    """None for a cell that was stopped; raises what every other cell would raise, too."""
    try:
        result = future.result()
    except BrokenProcessPool:
        return CellEnded(cell, None, "its process was killed, perhaps for lack of memory.")
    except _WRONG_USE:
        raise
    except Exception as error:
        return CellEnded(cell, None, str(error) or type(error).__name__)
    return None if result is None else CellEnded(cell, result)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal. Workers that start in here inherit the mask and never see it."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


_stopping: StopFlag
_working = threading.Event()


def _start_worker(stopping: StopFlag) -> None:
    global _stopping
    _stopping = stopping
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for its next task for ever: it saves its cell and ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        while _working.is_set():
            time.sleep(0.1)
        os._exit(1)


def _train_cell(cell: Cell, options: CellOptions) -> CellResult | None:
    """In a worker: train or resume a cell, measure it and keep its result; None if it was stopped."""
    import torch

    if options.gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = options.gpu
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    keep_freed_memory()
    cell.folder.mkdir(parents=True, exist_ok=True)
    with (cell.folder / LOG).open("wb") as log:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(log.fileno(), stream.fileno())
    print(f"process {os.getpid()}", flush=True)
    parent = multiprocessing.parent_process()
    _working.set()
    try:
        with stop_on_signal() as signalled:
            result = _train_and_measure(
                cell,
                options,
                lambda: signalled() or _stopping.is_set() or (parent is not None and not parent.is_alive()),
            )
        if result is not None:
            cell.keep_result(result)
        return result
    except Exception:
        traceback.print_exc()
        raise
    finally:
        _working.clear()


def _train_and_measure(cell: Cell, options: CellOptions, stop: Callable[[], bool]) -> CellResult | None:
    def log(event: Event) -> None:
        for line in describe_event(event):
            print(line, flush=True)

    resume = Run(cell.folder).state.exists()
    settings = {} if resume else cell.settings.changes_from(get_recipe(cell.recipe))
    try:
        run = train(
            cell.recipe,
            data=options.data,
            output=cell.folder,
            from_weights=None if resume else options.from_weights,
            teacher=options.teacher if cell.settings.distillation else None,
            resume=resume,
            workers=options.workers,
            accelerator=options.accelerator,
            save_minutes=options.save_minutes,
            on_event=log,
            stop=stop,
            **settings,
        )
    except DivergedError as error:
        print(error, flush=True)
        return CellResult(cell.variant, cell.seed, "diverged")
    if run.results is None:
        return None
    cost = measure_cost(run.weights, data=options.data, accelerator=options.accelerator)
    latency_ms = engine_latency_ms(run.weights, data=options.data)
    speed = {} if latency_ms is None else {"engine_ms": latency_ms}
    return CellResult(cell.variant, cell.seed, "finished", _figures(run.results) | cost | speed)


def _figures(results: Results) -> dict[str, float]:
    """Accuracies on the test and validation splits, as far as there are any."""
    figures = {"seconds": results.seconds}
    for which, kept in (("last", results.last), ("best", results.best)):
        for split in ("test", "validation"):
            if kept is not None and (share := getattr(kept, f"{split}_accuracy")) is not None:
                figures[f"{which}_{split}_accuracy"] = share
    return figures
