"""Train a grid of variants with several seeds, and put them side by side, with the paper's row where it has one.

    attention    ssa, softmax, softmax_float_value, identity, relu, leaky_relu as in Tab. 1 and 5; and two controls:
                 none (no mixing of tokens) and random (Q and K never learn)
    time_steps   1, 2, 4, 6 as in Tab. 5; of events a quarter, half and all of the recipe's frames, and the paper's
    neuron       lif, if, plif
    size         the paper's depths and widths (Tab. 2 and 3); for other models half and all of both

A cell is a run folder, OUTPUT/VARIANT/seed_N. The same command again goes on where it was: finished cells are not run
again, others resume. More seeds may be added later.

Example: spikformer ablate attention
Example: spikformer ablate time_steps spikformer_small_cifar10 --data DIR --seeds 0 1 --only 1 4 --epochs 8
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

import tyro

from spikformer.analysis.ablation import CellResult, check_grid, variants, varied_fields
from spikformer.cli.arguments import parse_options
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import DEFAULT, get_recipe

if TYPE_CHECKING:
    from spikformer.cli.ablation.cells import Cell
    from spikformer.cli.ablation.comparison import Comparison
    from spikformer.cli.ablation.plan import Plan
    from spikformer.cli.ablation.pool import Ended


@dataclass(frozen=True)
class Options:
    grid: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GRID")]
    """What varies: attention, time_steps, neuron or size."""
    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[RECIPE]")] = DEFAULT
    """A recipe; most are called as their model."""
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for embedded sets."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """One run of every variant for each."""
    only: tuple[str, ...] = ()
    """Train these variants and leave the others."""
    output: Path | None = None
    """Folder of the cells; runs/ablation/RECIPE/GRID by default."""
    from_weights: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Start every cell from these weights, whatever of them fits."""
    jobs: int = 1
    """Cells at a time; each gets its part of the processors, or a GPU."""
    workers: int = 0
    """Processes that read ahead, for each cell."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to train; auto takes GPUs if there are any."""
    save_minutes: float = 10.0
    """Save a cell's state this often, besides after every epoch."""
    json: bool = False
    """Print JSON instead of a live line and a table."""
    settings: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


def parse(arguments: list[str]) -> Options:
    """Grid and recipe come first, so that the recipe's settings are the defaults of the rest."""
    words = [word for word in arguments[:2] if not word.startswith("-")]
    if arguments[:1] == words[:1] and words:
        grid = check_grid(words[0])
    elif {"-h", "--help"} & set(arguments):
        grid = "attention"
    else:
        raise ValueError("What is to vary comes first: spikformer ablate attention, time_steps, neuron or size.")
    name = words[1] if len(words) > 1 else DEFAULT
    default = Options(grid=grid, recipe=name, settings=get_recipe(name))
    options: Options = parse_options(Options, "ablate", __doc__, arguments, default=default)
    if (options.grid, options.recipe) != (grid, name):
        raise ValueError("Grid and recipe come first: spikformer ablate GRID RECIPE …, then options.")
    return options


def run(options: Options) -> int:
    from spikformer.cli.ablation.comparison import Comparison
    from spikformer.cli.ablation.pool import locked

    plan = _plan(options)
    chosen = plan.choose(options.seeds, options.only)
    plan.check()
    if any(cell.result() is None for cell in chosen):
        _open_data(options)
    with locked(plan.output) as lock:
        results = plan.begin()

        def compare() -> Comparison:
            cells = list(results.values())
            return Comparison(plan.grid, plan.recipe, plan.settings.data_set, plan.output, plan.variants, cells)

        failed, stopped = _train(options, chosen, results, lock, compare)
        found = compare()
        if results:
            found.write()
    if stopped:
        ended = sum(cell.folder in results for cell in chosen)
        _say(f"Stopped, {ended} of {len(chosen)} cells are done; the same command again goes on from here.")
        return 1
    if options.json:
        print(json.dumps(found.to_dict()))
    else:
        found.show()
    for each in failed:
        _say(f"{each.cell} failed: {each.sentence} Its log is in {each.cell.folder}; the same command tries it again.")
    return 1 if failed else 0


def _plan(options: Options) -> Plan:
    """What is asked for; what cannot be is refused before anything is written."""
    from spikformer.cli.ablation.plan import Plan
    from spikformer.data import options_of

    for name, least in (("jobs", 1), ("workers", 0), ("save_minutes", 0)):
        given = getattr(options, name)
        if given < least:
            raise ValueError(f"--{name.replace('_', '-')} must be at least {least}, got {given:g}.")
    if not options.seeds:
        raise ValueError("--seeds names no seed; give at least one number.")
    if options.from_weights is not None and not options.from_weights.exists():
        raise FileNotFoundError(f"There is no file {options.from_weights} to start from.")
    if options.from_weights is None and options.recipe.endswith("_transfer"):
        raise ValueError(f"{options.recipe} starts from ImageNet weights; give them with --from.")
    grid, settings, published = check_grid(options.grid), options.settings, get_recipe(options.recipe)
    if settings.seed != published.seed:
        raise ValueError(f"--seed is for one run; name all seeds here: --seeds {settings.seed} …")
    events = "time_steps" in options_of(settings.data_set)
    for name in varied_fields(grid, events=events):
        if getattr(settings.model, name) != getattr(published.model, name):
            raise ValueError(f"--model.{name.replace('_', '-')} is what this ablation varies; leave it out.")
    rows = variants(grid, settings.model, settings.data_set, events=events)
    output = options.output or Path("runs") / "ablation" / options.recipe / grid
    return Plan(output, grid, rows, options.recipe, settings, options.from_weights)


def _open_data(options: Options) -> None:
    """Once for all cells: a mistake about the data shows here, and what must be fetched is fetched."""
    from spikformer.data import open_for_model

    settings = options.settings
    open_for_model(settings.model, settings.data_set, options.data, validation_share=settings.validation_share)


def _train(
    options: Options,
    chosen: Sequence[Cell],
    results: dict[Path, CellResult],
    lock: IO[bytes],
    compare: Callable[[], Comparison],
) -> tuple[list[Ended], bool]:
    """Run the cells that have no result, and add theirs; returns those that failed, and whether it was stopped."""
    waiting = [cell for cell in chosen if cell.folder not in results]
    if not waiting:
        return [], False
    from spikformer.cli.ablation.line import CellsLine
    from spikformer.cli.ablation.pool import Pool
    from spikformer.cli.live import stop_on_signal

    failed = []
    pool = Pool(waiting, lambda cell: cell.command(*_train_options(options)), options.jobs, lock)
    done = len(chosen) - len(waiting)
    with (
        stop_on_signal() as stop,
        CellsLine(done, len(chosen), options.jobs, enabled=not options.json) as line,
        closing(pool.run(stop)) as events,
    ):
        for ended in events:
            line.show(pool.running)
            if ended is None:
                continue
            if ended.code == 2:  # wrong use, of which every cell would complain
                raise ValueError(ended.sentence)
            if ended.result is None:
                failed.append(ended)
            results[ended.cell.folder] = ended.result or CellResult(ended.cell.variant, ended.cell.seed, "failed")
            line.tell(ended)
            compare().write()
        return failed, stop()


def _train_options(options: Options) -> tuple[list[str], list[str]]:
    """What every cell is given, and what only one that starts is."""
    words = ["--workers", str(options.workers), "--accelerator", options.accelerator]
    words += ["--save-minutes", str(options.save_minutes)]
    words += [] if options.data is None else ["--data", str(options.data)]
    return words, [] if options.from_weights is None else ["--from", str(options.from_weights)]


def _say(sentence: str) -> None:
    from spikformer.cli.terminal import say

    say(sentence, stderr=True)
