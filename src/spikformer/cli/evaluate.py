"""Measure saved weights on data they were not trained on: accuracy by class and after each time step, confusion.

Example: spikformer evaluate runs/spikformer_tiny_digits
Example: spikformer evaluate runs/photos/last.safetensors --data DIR --split validation
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from spikformer.cli.console import bar, cell, check_least, plain_table, print_table, say
from spikformer.errors import SILENT
from spikformer.validation import Accelerator, Split

if TYPE_CHECKING:
    from spikformer.data import DataSet
    from spikformer.training import Evaluation


@dataclass(frozen=True)
class Options:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, a .safetensors file of it, an .engine file of `compile`, or a shipped name (`models --weights`)."""
    data: Path | None = None
    """Folder or archive with the data set's files; by default where the run found them."""
    workers: int = 0
    """Processes that read ahead."""
    strict: bool = False
    """Stop at a file that cannot be read, instead of skipping it."""
    split: Split = "test"
    """Which split of the data; validation is what training held out."""
    max_samples: int | None = None
    """How many samples at most, taken from all over the split; all by default."""
    batch_size: int = 128
    """Samples at a time."""
    accelerator: Accelerator = "auto"
    """Where to compute; auto uses a GPU if there is one."""
    tta: bool = False
    """Also answer by the mean over shifted and mirrored views, and report that beside the plain accuracy."""
    confusion: Path | None = None
    """Where to draw the confusion matrix, as .png, .svg or .pdf; by default WEIGHTS_SPLIT_confusion.png beside them."""
    json: bool = False
    """Print JSON instead of tables."""


def run(options: Options) -> int:
    from spikformer.runs.evaluate import evaluate, open_evaluated
    from spikformer.runs.trained import output_beside, weights_path
    from spikformer.visualise.accuracy import draw_confusion
    from spikformer.visualise.style import check_figure_path

    check_least(options, batch_size=1, workers=0)
    weights = weights_path(options.weights)
    name = weights.name.removesuffix(".safetensors").replace(".", "_")  # an engine's lies beside its weights'
    figure = options.confusion or output_beside(weights, f"{name}_{options.split}_confusion.png")
    check_figure_path(figure)
    model, data = open_evaluated(weights, options.data)
    count = len(data.split(options.split))
    count = count if options.max_samples is None else min(count, options.max_samples)
    with bar("Evaluating", count, enabled=not options.json) as advance:
        found = evaluate(
            model,
            data=data,
            split=options.split,
            max_samples=options.max_samples,
            batch_size=options.batch_size,
            workers=options.workers,
            strict=options.strict,
            tta=options.tta,
            accelerator=options.accelerator,
            on_batch=advance,
        )
    draw_confusion(found.confusion, data.class_names, figure)
    if options.json:
        print(json.dumps(asdict(found) | {"by_class": found.by_class, "figure": str(figure)}))
        return 0
    _show(found, data, figure)
    return 0


def _show(found: Evaluation, data: DataSet, figure: Path) -> None:
    table = plain_table()
    table.add_column("Class", no_wrap=True)
    table.add_column("Samples", justify="right")
    table.add_column("Correct", justify="right")
    for name, row, share in zip(data.class_names, found.confusion, found.by_class, strict=True):
        table.add_row(cell(name), str(sum(row)), "–" if share is None else f"{share:.2%}")
    print_table(table)
    listed = ", ".join(f"{accuracy:.2%}" for accuracy in found.after_steps)
    lines = [
        f"top-1 {found.top1:.2%}, top-5 {found.top5:.2%}, loss {found.loss:.3f} on {found.num_samples} samples of "
        f"{data.name}",
        f"after each time step: {listed}",
        f"confusion matrix: {figure}",
    ]
    if found.tta_top1 is not None:
        lines.insert(1, f"top-1 {found.tta_top1:.2%} by the mean over shifted and mirrored views")
    if found.silent:
        lines.append(SILENT)
    if found.unreadable:
        lines.append(f"{found.unreadable} more could not be read and are not counted")
    for line in lines:
        say(line)
