"""Train a grid of variants with several seeds, each cell in a process of its own.

    comparison = ablate("attention", "spikformer_tiny_digits", seeds=(0, 1), only=("ssa", "relu"), epochs=5)

The same call again continues where it was: finished cells are kept, others resume. Seeds may be added. Worker
processes are spawned, so a script that calls this needs `if __name__ == "__main__":`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spikformer.analysis.ablation import CellResult, Variant, check_grid, variants, varied_fields
from spikformer.data import open_for_model, options_of
from spikformer.errors import FieldError
from spikformer.runs.cells import AblationFolder, Cell, Comparison
from spikformer.runs.process import FolderLock
from spikformer.runs.trained import weights_path
from spikformer.runs.workers import CellEnded, CellOptions, run_cells
from spikformer.training.recipes import DEFAULT, get_recipe, pretrained_on
from spikformer.training.variations import TEACHERS_SHARE, variations
from spikformer.validation import Accelerator, check_at_least

_PATIENCE_SECONDS = 60.0  # for cells of a command that was killed, while they save


@dataclass(frozen=True)
class CellsRunning:
    """Reported several times a second."""

    running: list[Cell]
    num_done: int
    num_cells: int


def ablate(
    grid: str,
    recipe: str = DEFAULT,
    *,
    data: str | Path | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    only: Sequence[str] = (),
    output: str | Path | None = None,
    from_weights: str | Path | None = None,
    teacher: str | Path | None = None,
    jobs: int = 1,
    workers: int = 0,
    accelerator: Accelerator = "auto",
    save_minutes: float = 10.0,
    on_event: Callable[[CellsRunning | CellEnded], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Comparison:
    """Train the cells that have no result yet, `jobs` at a time, and compare all that have one.

    `overrides` are settings of the recipe, for all cells. A `teacher` teaches all, but of the grid `recipe` the row
    `distillation` alone, unless the recipe itself learns from one. Once `stop` returns True, running cells save their
    state and the call returns; `Comparison.num_missing` then is above 0.
    """
    for name, value, least in (("jobs", jobs, 1), ("workers", workers, 0), ("save_minutes", save_minutes, 0)):
        check_at_least(name, value, least)
    if not seeds:
        raise FieldError("seeds", "seeds is empty; give at least one seed.")
    start = None if from_weights is None else weights_path(from_weights)
    taught = None if teacher is None else weights_path(teacher)
    folder = _folder(grid, recipe, output, start, taught, overrides)
    chosen = folder.choose(seeds, only)
    folder.check()
    where = None if data is None else Path(data)
    if any(cell.result() is None for cell in chosen):
        # Once for all cells: a mistake about the data shows here, and downloads happen once.
        settings = folder.settings
        open_for_model(settings.model, settings.data_set, where, validation_share=settings.validation_share)
    folder.path.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder.path)
    lock.acquire()
    try:
        _wait_for_orphans(folder)
        results = folder.begin()

        def compare() -> Comparison:
            missing = sum(cell.folder not in results for cell in chosen)
            return Comparison.of(folder, list(results.values()), missing)

        waiting = [cell for cell in chosen if cell.folder not in results]

        def options(slot: int) -> CellOptions:
            threads, gpu = cell_resources(slot, jobs)
            return CellOptions(where, start, taught, workers, accelerator, save_minutes, threads, gpu)

        with closing(run_cells(waiting, options, jobs, stop)) as reports:
            for each in reports:
                if isinstance(each, CellEnded):
                    outcome = each.result or CellResult(each.cell.variant, each.cell.seed, "failed")
                    results[each.cell.folder] = outcome
                    compare().write()
                    on_event(each)
                else:
                    on_event(CellsRunning(each, len(chosen) - len(waiting) + _ended(waiting, results), len(chosen)))
        found = compare()
        if results:
            found.write()
        return found
    finally:
        lock.release()


def _ended(cells: Sequence[Cell], results: dict[Path, CellResult]) -> int:
    return sum(cell.folder in results for cell in cells)


def _folder(
    grid: str,
    recipe: str,
    output: str | Path | None,
    from_weights: Path | None,
    teacher: Path | None,
    overrides: dict[str, Any],
) -> AblationFolder:
    """What is asked for; raises before anything is written."""
    grid, published = check_grid(grid), get_recipe(recipe)
    settings = published.override(**overrides)
    for path, purpose in ((from_weights, "start from"), (teacher, "learn from")):
        if path is not None and not path.exists():
            raise FileNotFoundError(f"There is no file {path} to {purpose}.")
    if teacher is None and settings.distillation:
        raise FieldError("teacher", "This recipe learns from a teacher; give its weights with --teacher.")
    if teacher is not None and grid != "recipe" and not settings.distillation:
        settings = settings.override(distillation=TEACHERS_SHARE)
    if from_weights is None and (source := pretrained_on(recipe)):
        raise FieldError("from_weights", f"{recipe} starts from weights trained on {source}; give them with --from.")
    if settings.seed != published.seed:
        raise FieldError("seed", f"seed is for a single run; give all seeds, as in --seeds {settings.seed} …")
    events = "time_steps" in options_of(settings.data_set)
    for name in varied_fields(grid, events=events):
        if getattr(settings.model, name, None) != getattr(published.model, name, None):  # None: it has no such field
            raise FieldError(name, f"model.{name} is what this ablation varies; leave it out.")
    if "validation_share" in overrides and "validation_share" not in options_of(settings.data_set):
        message = f"{settings.data_set} has a validation split of its own; leave validation_share out."
        raise FieldError("validation_share", message)
    if grid == "recipe":
        varied = variations(settings, taught=teacher is not None)
        rows = [Variant(name, {}, None, settings=changes) for name, changes in varied.items()]
    else:
        rows = variants(grid, settings.model, settings.data_set, events=events)
    path = Path(output) if output is not None else Path("runs") / "ablation" / recipe / grid
    return AblationFolder(path, grid, rows, recipe, settings, from_weights, teacher)


def _wait_for_orphans(folder: AblationFolder) -> None:
    """Workers of a command that was killed save and end a little after it."""
    for cell in folder.existing():
        lock = FolderLock(cell.folder)
        lock.acquire(_PATIENCE_SECONDS)
        lock.release()


def cell_resources(slot: int, jobs: int) -> tuple[int | None, str | None]:
    """Threads and the GPU of one of `jobs` cells that run side by side; None leaves the choice to PyTorch."""
    if jobs == 1:
        return None, None
    import torch

    threads = None if "OMP_NUM_THREADS" in os.environ else max(1, (os.cpu_count() or 1) // jobs)
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = named.split(",") if named else [str(number) for number in range(torch.cuda.device_count())]
    return threads, gpus[slot % len(gpus)] if gpus else None
