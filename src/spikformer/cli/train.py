"""Train a model on its data set, or on any other in the model's size, and save it.

Example: spikformer train spikformer_tiny_digits --output runs/digits
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@dataclass(frozen=True)
class Options:
    model: Annotated[str, tyro.conf.Positional] = "spikformer_tiny_digits"
    """One of those that `spikformer models` lists."""
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for digits and digits_dvs."""
    data_set: str | None = None
    """Train on this set instead of the model's own; image_folder and event_folder read train/CLASS/*."""
    output: Path | None = None
    """Folder to write last.safetensors into; runs/MODEL by default."""
    epochs: int = 20
    """Passes over the training samples."""
    batch_size: int = 64
    """Samples in a step."""
    workers: int = 0
    """Processes that read ahead; 0 reads in the training process."""
    strict: bool = False
    """Stop at a file that cannot be read, instead of going on without it."""
    seed: int = 0
    """Decides the initial weights and the order of samples."""
    json: bool = False
    """Print JSON instead of progress and a sentence."""


def run(options: Options) -> int:
    import torch

    from spikformer.data import open_for_model
    from spikformer.memory import keep_freed_memory
    from spikformer.models import create_model, save
    from spikformer.presets import get_preset
    from spikformer.training import measure_accuracy, train

    _check(options)
    keep_freed_memory()
    torch.manual_seed(options.seed)
    config = get_preset(options.model).config
    data = open_for_model(config, options.data_set or _own_set(options.model), options.data)
    model = create_model(options.model, num_classes=len(data.class_names), in_channels=data.channels)
    model.about = {"model": options.model, "data": data.name, "class_names": data.class_names}
    output = options.output or Path("runs") / options.model
    output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=options.json) as progress:
        bar = progress.add_task("Training", total=options.epochs)
        for epoch in train(
            model,
            data,
            epochs=options.epochs,
            batch_size=options.batch_size,
            seed=options.seed,
            workers=options.workers,
            strict=options.strict,
        ):
            progress.update(bar, advance=1, description=f"Epoch {epoch.number}: loss {epoch.loss:.3f}")
    seconds = time.perf_counter() - started
    test = measure_accuracy(model, data, "test", workers=options.workers, strict=options.strict)
    accuracy = test.after_steps[-1]
    path = output / "last.safetensors"
    save(model, path)
    if options.json:
        unreadable = {"train": epoch.unreadable, "test": test.unreadable}
        report = {"weights": str(path), "test_accuracy": accuracy, "seconds": seconds, "unreadable": unreadable}
        print(json.dumps(report))
        return 0
    if epoch.unreadable or test.unreadable:
        Console().print(
            f"{epoch.unreadable} readings in training and {test.unreadable} in testing failed; "
            f"`spikformer data check {data.name}` lists the files.",
            highlight=False,
            soft_wrap=True,
        )
    Console().print(
        f"Test accuracy {accuracy:.2%} after {options.epochs} epochs in {seconds:.0f} s; wrote {path}",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _check(options: Options) -> None:
    for option, least in (("epochs", 1), ("batch_size", 1), ("workers", 0)):
        if getattr(options, option) < least:
            name = option.replace("_", "-")
            raise ValueError(f"--{name} must be at least {least}, got {getattr(options, option)}.")
    if not 0 <= options.seed < 2**63:
        raise ValueError(f"--seed must be a whole number from 0 to 2⁶³ − 1, got {options.seed}.")


def _own_set(model: str) -> str:
    """The set that a model's name ends with."""
    from spikformer.data import list_datasets

    return next(name for name in list_datasets() if model.endswith(f"_{name}"))
