"""Train a grid of variants with several seeds, and put them side by side, with the paper's row where it has one.

    attention    ssa, softmax, softmax_float_value, identity, relu, leaky_relu as in Tab. 1 and 5; and two controls:
                 none (no mixing of tokens) and random (Q and K never learn)
    time_steps   1, 2, 4, 6 as in Tab. 5; of events a quarter, half and all of the recipe's frames, and the paper's
    neuron       lif, if, plif
    size         the paper's depths and widths (Tab. 2 and 3); for other models half and all of both
    architecture a network of each, with about as many parameters, the same neurons and as many tokens
    recipe       the recipe, and one setting of it at a time: tet, muon, step_schedule, …; compared on validation

A cell is a run folder, OUTPUT/VARIANT/seed_N. The same command again continues where it was: finished cells are kept,
others resume. More seeds may be added later.

Example: spikformer ablate attention
Example: spikformer ablate architecture --only spikformer maxformer --seeds 0 1
Example: spikformer ablate recipe spikformer_small_cifar10 --data DIR --seeds 0 1 --only recipe tet muon --epochs 4
Example: spikformer ablate time_steps spikformer_small_cifar10 --data DIR --seeds 0 1 --only 1 4 --epochs 8
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, get_args

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from spikformer.analysis.ablation import Grid, Line, check_grid
from spikformer.analysis.energy import CONVENTIONS, energy_figure
from spikformer.cli.console import Terminal, one_line, parse_options, print_table, say
from spikformer.runs.ablation import CellsRunning, ablate
from spikformer.runs.cells import Cell, Comparison
from spikformer.runs.process import stop_on_signal
from spikformer.runs.workers import CellEnded
from spikformer.runs.writer import LOG
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import DEFAULT, get_recipe
from spikformer.validation import Accelerator
from spikformer.visualise.report.wording import duration


@dataclass(frozen=True)
class Options:
    grid: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GRID")]
    """What varies: attention, time_steps, neuron, size, architecture or recipe."""
    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[RECIPE]")] = DEFAULT
    """A recipe; most are named after their model."""
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for embedded sets."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Train every variant once for each."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="VARIANT…")] = ()
    """Train these variants only."""
    output: Path | None = None
    """Folder for the cells; runs/ablation/RECIPE/GRID by default."""
    from_weights: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """Start every cell from these weights, as far as they fit."""
    teacher: str | None = None
    """Learn from this network's answers, too; of the grid recipe, a row of its own."""
    jobs: int = 1
    """Cells at a time; each gets its part of the processors, or a GPU."""
    workers: int = 0
    """Processes that read ahead, for each cell."""
    accelerator: Accelerator = "auto"
    """Where to train; auto uses GPUs if there are any."""
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
        raise ValueError(f"The grid comes first: spikformer ablate {' or '.join(get_args(Grid))}.")
    name = words[1] if len(words) > 1 else DEFAULT
    default = Options(grid=grid, recipe=name, settings=get_recipe(name))
    options: Options = parse_options(Options, "ablate", __doc__, arguments, default=default)
    if (options.grid, options.recipe) != (grid, name):
        raise ValueError("Grid and recipe come first: spikformer ablate GRID RECIPE …, then options.")
    return options


def run(options: Options) -> int:
    failed: list[CellEnded] = []
    with stop_on_signal() as stop, CellsLine(options.jobs, enabled=not options.json) as line:

        def report(event: CellsRunning | CellEnded) -> None:
            line.show(event)
            if isinstance(event, CellEnded) and event.result is None:
                failed.append(event)

        found = ablate(
            options.grid,
            options.recipe,
            data=options.data,
            seeds=options.seeds,
            only=options.only,
            output=options.output,
            from_weights=options.from_weights,
            teacher=options.teacher,
            jobs=options.jobs,
            workers=options.workers,
            accelerator=options.accelerator,
            save_minutes=options.save_minutes,
            on_event=report,
            stop=stop,
            **options.settings.changes_from(get_recipe(options.recipe)),
        )
    if found.num_missing:
        say(f"Stopped with {found.num_missing} cells to go; the same command continues from here.", stderr=True)
        return 1
    if options.json:
        print(json.dumps(found.to_dict()))
    else:
        print_comparison(found)
    for each in failed:
        log = each.cell.folder / LOG
        say(f"{each.cell} failed: {each.message} See {log}; the same command tries it again.", stderr=True)
    return 1 if failed else 0


class CellsLine:
    """Which cells run and how long it may take, in one line that is redrawn; elsewhere a line for each cell."""

    def __init__(self, jobs: int, *, enabled: bool) -> None:
        self._console = Terminal(stderr=True)
        self._enabled, self._jobs = enabled, jobs
        self._seconds: list[float] = []
        self._began: dict[Cell, float] = {}
        self._done = self._total = 0
        columns = (
            TextColumn("Ablation"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[running]}  {task.fields[left]}"),
        )
        live = enabled and self._console.is_terminal
        self._bar = Progress(*columns, console=self._console, transient=True, disable=not live)
        self._task = self._bar.add_task("", total=None, running="", left="")

    def __enter__(self) -> CellsLine:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, event: CellsRunning | CellEnded) -> None:
        if isinstance(event, CellEnded):
            self._print_ended(event)
            return
        self._done, self._total = event.num_done, event.num_cells
        now = time.monotonic()
        for cell in event.running:
            self._began.setdefault(cell, now)
        left = ""
        if self._seconds:
            mean = sum(self._seconds) / len(self._seconds)
            spent = sum(min(mean, now - self._began[cell]) for cell in event.running)
            left = f"{duration(max(0.0, (self._total - self._done) * mean - spent) / self._jobs)} left"
        shown = "; ".join(map(str, event.running))
        self._bar.update(self._task, total=self._total, completed=self._done, running=shown, left=left)

    def _print_ended(self, ended: CellEnded) -> None:
        self._seconds.append(time.monotonic() - self._began.get(ended.cell, time.monotonic()))
        if not self._enabled:
            return
        outcome = f"failed: {ended.message}"
        if ended.result is not None:
            shares = [value for name, value in ended.result.figures.items() if name.startswith("last_")]
            outcome = f"{shares[0]:.2%}" if shares else "did not converge"
        line = f"{ended.cell}: {outcome} ({self._done + 1} of {self._total})"
        self._console.print(one_line(line), highlight=False, soft_wrap=True, markup=False)


_NOTHING = "–"
_OTHER_CONVENTIONS = [word for word in CONVENTIONS if word != "paper"]


def print_comparison(comparison: Comparison) -> None:
    """The table, and where the rest is."""
    lines = comparison.lines
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column(comparison.grid.replace("_", " ").capitalize(), no_wrap=True)
    columns = {title: [cell(line) for line in lines] for title, cell in _columns(comparison, lines).items()}
    columns = {title: cells for title, cells in columns.items() if set(cells) != {_NOTHING}}
    for title in columns:
        table.add_column(title, justify="right")
    for line, *cells in zip(lines, *columns.values(), strict=True):
        table.add_row(line.variant.name, *cells)
    print_table(table)
    for note in _notes(comparison, lines):
        say(note)


def _columns(comparison: Comparison, lines: Sequence[Line]) -> dict[str, Callable[[Line], str]]:
    """Titles, and what stands below each; one that is empty is left out."""
    # One unit for a column, and a small network's energy would vanish in millijoules.
    energies = [spread.mean for line in lines if (spread := line.figure("energy_mj"))]
    unit, per_mj = ("mJ", 1.0) if max(energies, default=0.0) >= 1 else ("µJ", 1e3)
    columns: dict[str, Callable[[Line], str]] = {
        "\nRuns": _runs,
        "Last\n%": lambda line: _accuracy(comparison, line, "last"),
        "Best\n%": lambda line: _accuracy(comparison, line, "best"),
        "Params\nM": _mean("parameters", 1e-6),
        "OPs\nM": _mean("operations", 1e-6),
        f"Energy\n{unit}": _mean("energy_mj", per_mj),
    }
    if comparison.grid == "architecture":
        columns |= {f"{word.capitalize()}\n{unit}": _mean(energy_figure(word), per_mj) for word in _OTHER_CONVENTIONS}
        columns["Engine\nms"] = _mean("engine_ms", 1.0)
    if comparison.grid == "recipe":
        columns["Training\nminutes"] = _mean("seconds", 1 / 60)
    if comparison.grid == "attention":
        columns |= {"QKV\nM": _mean("attention_operations", 1e-6), "QKV\nµJ": _mean("attention_energy_mj", 1e3)}
    columns["Paper\n%"] = _printed_accuracy
    columns |= {"Paper\nM": _printed("operations_millions"), f"Paper\n{unit}": _printed("energy_uj", per_mj / 1e3)}
    if comparison.grid == "attention":
        columns["Paper\nQKV M"] = _printed("attention_operations_millions")
        columns["Paper\nQKV µJ"] = _printed("attention_energy_uj")
    return columns


def _accuracy(comparison: Comparison, line: Line, which: str) -> str:
    """Mean ± deviation of the runs that have one."""
    spread = line.figure(f"{which}_{comparison.split}_accuracy")
    if spread is None:
        return "✗" if line.num_cells("diverged") == len(line.cells) else _NOTHING
    return f"{100 * spread.mean:.2f}" + ("" if spread.std is None else f" ± {100 * spread.std:.2f}")


def _notes(comparison: Comparison, lines: Sequence[Line]) -> list[str]:
    seeds = {cell.seed for line in lines for cell in line.cells}
    over = f"mean ± standard deviation over {len(seeds)} seeds" if len(seeds) > 1 else "with one seed"
    notes = [
        f"Accuracy on the {comparison.split} split of {comparison.data_set}, {over}; operations and energy of one "
        "sample, counted as in the paper."
    ]
    if comparison.grid == "attention":
        notes.append("QKV: the product of Q, K and V in one block.")
    if comparison.grid == "architecture":
        titles = ", ".join(_OTHER_CONVENTIONS).capitalize()
        notes.append(
            f"{titles}: the energy by those conventions. Engine: one sample on one thread of this machine; – where "
            "the engine does not run the network."
        )
    models = {line.variant.paper.model for line in lines if line.variant.paper}
    if len(models) == 1:  # a size has its own
        notes.append(f"The paper's figures are of {models.pop()}.")
    return [*notes, f"table, picture: {comparison.files['csv']}, {comparison.files['png']}"]


def _runs(line: Line) -> str:
    """How many finished; ✗ for those that did not converge, as in the paper."""
    counts = {"": line.num_cells("finished"), " ✗": line.num_cells("diverged"), " failed": line.num_cells("failed")}
    return ", ".join(f"{count}{word}" for word, count in counts.items() if count)


def _mean(name: str, scale: float) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        spread = line.figure(name)
        return _NOTHING if spread is None else _number(spread.mean * scale)

    return cell


def _printed(name: str, scale: float = 1.0) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        value = getattr(line.variant.paper, name, None)
        return _NOTHING if value is None else _number(value * scale)

    return cell


def _printed_accuracy(line: Line) -> str:
    paper = line.variant.paper
    if paper is None:
        return _NOTHING
    return "✗" if paper.accuracy_percent is None else f"{paper.accuracy_percent:.2f}"


def _number(value: float) -> str:
    """Three digits that count, or all of a larger number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
