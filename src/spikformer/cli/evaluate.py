"""Measure saved weights on data they were not trained on: accuracy by class and after each time step, confusion.

Example: spikformer evaluate runs/digits/last.safetensors
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from spikformer.cli.terminal import print_table, say
from spikformer.vocabulary import SILENT

if TYPE_CHECKING:
    from spikformer.data import DataSet
    from spikformer.engine import Engine
    from spikformer.models import Spikformer
    from spikformer.training import EvalOptions, Evaluation


@dataclass(frozen=True)
class Options:
    weights: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A .safetensors file written by train, or an .engine file written by compile."""
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for digits and digits_dvs."""
    workers: int = 0
    """Processes that read ahead."""
    strict: bool = False
    """Stop at a file that cannot be read, instead of leaving it out."""
    split: Literal["train", "validation", "test"] = "test"
    """Which part of the data; validation is what training held out."""
    batch_size: int = 128
    """Samples at a time."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to compute; auto takes a GPU if there is one."""
    confusion: Path | None = None
    """Where to draw the confusion matrix, as .png, .svg or .pdf; by default WEIGHTS_SPLIT_confusion.png beside them."""
    json: bool = False
    """Print JSON instead of tables."""


def run(options: Options) -> int:
    from spikformer.cli.samples import bar
    from spikformer.runs.trained import load_answering, open_data
    from spikformer.training import EvalOptions
    from spikformer.visualise.confusion import draw_confusion
    from spikformer.visualise.figures import check_figure_path

    for option, least in (("batch_size", 1), ("workers", 0)):
        if (given := getattr(options, option)) < least:
            raise ValueError(f"--{option.replace('_', '-')} must be at least {least}, got {given}.")
    name = options.weights.name.removesuffix(".safetensors").replace(".", "_")  # an engine's lies beside its weights'
    picture = options.confusion or options.weights.with_name(f"{name}_{options.split}_confusion.png")
    check_figure_path(picture)
    model, about = load_answering(options.weights)
    data = open_data(model, about, options.data)
    with bar("Evaluating", len(data.split(options.split)), enabled=not options.json) as advance:
        reading = EvalOptions(
            batch_size=options.batch_size, workers=options.workers, strict=options.strict, on_batch=advance
        )
        found = _evaluate(model, data, options, reading)
    draw_confusion(found.confusion, data.class_names, picture)
    if options.json:
        print(json.dumps(asdict(found) | {"by_class": found.by_class, "picture": str(picture)}))
        return 0
    _show(found, data, picture)
    return 0


def _evaluate(model: Spikformer | Engine, data: DataSet, options: Options, reading: EvalOptions) -> Evaluation:
    import torch

    from spikformer.engine import Engine
    from spikformer.training import evaluate, evaluate_answers
    from spikformer.training.distributed import choose_device

    if not isinstance(model, Engine):
        return evaluate(model.to(choose_device(options.accelerator)), data, options.split, reading)
    if options.accelerator == "gpu":
        raise ValueError("An engine runs on the CPU; leave --accelerator auto, or give the weights instead.")
    engine = model

    def answer(inputs: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(engine.forward_steps(inputs))

    resting = torch.from_numpy(engine.resting_readout())
    return evaluate_answers(answer, data, options.split, resting, reading)


def _show(found: Evaluation, data: DataSet, picture: Path) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Class", no_wrap=True)
    table.add_column("Samples", justify="right")
    table.add_column("Right", justify="right")
    for name, row, share in zip(data.class_names, found.confusion, found.by_class, strict=True):
        table.add_row(escape(name), str(sum(row)), "–" if share is None else f"{share:.2%}")
    print_table(table)
    listed = ", ".join(f"{accuracy:.2%}" for accuracy in found.after_steps)
    sentences = [
        f"top-1 {found.top1:.2%}, top-5 {found.top5:.2%}, loss {found.loss:.3f} on {found.num_samples} samples of "
        f"{data.name}",
        f"after each time step: {listed}",
        f"confusion matrix: {picture}",
    ]
    if found.silent:
        sentences.append(SILENT)
    if found.unreadable:
        sentences.append(f"{found.unreadable} more could not be read and are not counted")
    for sentence in sentences:
        say(sentence)
