"""Choose how sure an answer must be to end before the last time step, and measure what that gives and costs.

The confidence is chosen on the validation split; accuracy, steps, milliseconds and energy are those of the test split.

Example: spikformer anytime runs/spikformer_tiny_digits
Example: spikformer anytime best.safetensors --data DIR --tolerance 0.005 --store
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Table

from spikformer.cli.console import bar, check_least, plain_table, print_table, say
from spikformer.errors import SILENT
from spikformer.weights import is_read_only

if TYPE_CHECKING:
    from spikformer.analysis.anytime import AnytimeReport, MeasuredExit


@dataclass(frozen=True)
class Options:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, weights of it, such as runs/NAME/best.safetensors, or a shipped name (`models --weights`)."""
    data: Path | None = None
    """Folder or archive with the data set's files; by default where the run found them."""
    tolerance: float = 0.002
    """By how much accuracy on the validation split may be below that of all steps; 0.002 is 0.2 points."""
    max_samples: int | None = None
    """How many samples of each split at most, taken from all over it; all by default."""
    threads: int | None = None
    """Threads of the engine; by default as many as this process may use."""
    output: Path | None = None
    """Where to draw, as .png, .svg or .pdf; WEIGHTS_anytime.png beside the weights by default."""
    store: bool = False
    """Write the chosen confidence into the weights' card, where `predict --confidence card` finds it."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    from spikformer.runs.anytime import anytime, open_anytime, planned_samples, store_confidence
    from spikformer.runs.trained import output_beside, weights_path
    from spikformer.visualise.anytime import anytime_figure
    from spikformer.visualise.style import check_figure_path, save_figure

    if not 0 <= options.tolerance < 1:  # before anything is read
        raise ValueError(f"--tolerance must be a share from 0 to below 1, got {options.tolerance:g}.")
    check_least(options, max_samples=1, threads=1)
    weights = weights_path(options.weights)
    output = options.output or output_beside(weights, f"{weights.stem}_anytime.png")
    check_figure_path(output)
    if options.store and is_read_only(weights):
        raise ValueError(
            f"{options.weights} came with the package or from the hub, and stays as it is; copy the file to store one."
        )
    model, data = open_anytime(options.weights, options.data)
    with bar("Measuring", planned_samples(data, options.max_samples), enabled=not options.json) as advance:
        report = anytime(
            model,
            data=data,
            tolerance=options.tolerance,
            max_samples=options.max_samples,
            threads=options.threads,
            on_batch=advance,
        )
    save_figure(anytime_figure(report, title=f"{data.name}, {report.machine}"), output)
    if options.store:
        store_confidence(weights, report.confidence)
    if options.json:
        stored = str(weights) if options.store else None
        print(json.dumps(asdict(report) | {"figure": str(output), "stored": stored}))
        return 0
    print_table(_table(report))
    for line in _summary(report, data.name):
        say(line)
    say(f"drawn in {output}")
    if options.store:
        say(f"stored in the card of {weights}")
    return 0


def _table(report: AnytimeReport) -> Table:
    """A row for each confidence on the test split, the chosen one marked, all steps last; shares are of all steps."""
    table = plain_table()
    table.add_column("Confidence", no_wrap=True)
    headings = ("Accuracy", "Mean steps", "Leaving after each step", "ms, batch 1", f"ms, batch {report.batch_size}")
    for heading in (*headings, "paper µJ", "strict µJ"):
        table.add_column(heading, justify="right")
    for each in (*report.exits, report.all_steps):
        table.add_row(*_row(each, report))
    return table


def _row(each: MeasuredExit, report: AnytimeReport) -> list[str]:
    point, whole = each.point, report.all_steps
    name = "all steps" if point.confidence is None else f"{point.confidence:g}"
    energies = (each.paper_energy_mj, whole.paper_energy_mj), (each.strict_energy_mj, whole.strict_energy_mj)
    return [
        f"{name} ←" if point.confidence == report.confidence else name,
        f"{point.accuracy:.2%}",
        _compared(point.mean_steps, whole.point.mean_steps, 2),
        " ".join(f"{share:.0%}" for share in point.leaving),
        _compared(each.single_ms, whole.single_ms, 3),
        _compared(each.batch_ms, whole.batch_ms, 3),
        *(_compared(1e3 * energy, 1e3 * of_all, 3) for energy, of_all in energies),
    ]


def _compared(value: float, of_all: float, digits: int) -> str:
    share = f" ({value / of_all:.0%})" if of_all and value != of_all else ""
    return f"{value:,.{digits}f}{share}"


def _summary(report: AnytimeReport, data: str) -> list[str]:
    held_out, whole = report.validation, report.validation_all
    time_steps = len(whole.leaving)
    lines = [
        f"Chosen on the validation split: confidence {report.confidence:g}, {held_out.accuracy:.2%} after "
        f"{held_out.mean_steps:.2f} steps instead of {whole.accuracy:.2%} after {time_steps}."
        if report.confidence is not None
        else f"No confidence keeps the validation accuracy of all steps, {whole.accuracy:.2%}, within "
        f"{report.tolerance:.2%}: take all steps."
    ]
    plural = "" if report.num_threads == 1 else "s"
    lines.append(
        f"The table is of {report.num_samples} samples of {data}, test; percentages in brackets are of all steps. "
        f"Milliseconds a sample: {report.instructions} on {report.num_threads} thread{plural} of {report.machine}; "
        "all steps are computed side by side, others one by one. Energy is an estimate by operation counts."
    )
    return [*lines, SILENT] if report.silent else lines
