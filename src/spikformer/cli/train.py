"""Train a model on embedded data, scikit-learn's digits as images or as events, and save it.

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

DATA = {"spikformer_tiny_digits": "digits", "spikformer_tiny_digits_dvs": "digits_dvs"}


@dataclass(frozen=True)
class Options:
    model: Annotated[str, tyro.conf.Positional] = "spikformer_tiny_digits"
    """spikformer_tiny_digits or spikformer_tiny_digits_dvs."""
    output: Path | None = None
    """Folder to write last.safetensors into; runs/MODEL by default."""
    epochs: int = 20
    """Passes over the training images."""
    seed: int = 0
    """Decides the initial weights and the order of images."""
    json: bool = False
    """Print JSON instead of progress and a sentence."""


def run(options: Options) -> int:
    import torch

    from spikformer.data import open_dataset
    from spikformer.memory import keep_freed_memory
    from spikformer.models import create_model, save
    from spikformer.training import accuracy_after_steps, train

    if options.epochs < 1:
        raise ValueError(f"--epochs must be at least 1, got {options.epochs}.")
    if not 0 <= options.seed < 2**63:
        raise ValueError(f"--seed must be a whole number from 0 to 2⁶³ − 1, got {options.seed}.")
    keep_freed_memory()
    torch.manual_seed(options.seed)
    model = create_model(options.model)
    if options.model not in DATA:
        raise ValueError(
            f"So far training reads embedded data only, for {' and '.join(DATA)}; {options.model} needs files."
        )
    output = options.output or Path("runs") / options.model
    output.mkdir(parents=True, exist_ok=True)
    data = open_dataset(DATA[options.model])
    model.about = {"model": options.model, "data": data.name, "class_names": data.class_names}
    started = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=options.json) as progress:
        bar = progress.add_task("Training", total=options.epochs)
        for epoch in train(model, data, epochs=options.epochs, seed=options.seed):
            progress.update(bar, advance=1, description=f"Epoch {epoch.number}: loss {epoch.loss:.3f}")
    seconds = time.perf_counter() - started
    accuracy = accuracy_after_steps(model, data, "test")[-1]
    path = output / "last.safetensors"
    save(model, path)
    if options.json:
        print(json.dumps({"weights": str(path), "test_accuracy": accuracy, "seconds": seconds}))
        return 0
    Console().print(
        f"Test accuracy {accuracy:.2%} after {options.epochs} epochs in {seconds:.0f} s; wrote {path}",
        highlight=False,
        soft_wrap=True,
    )
    return 0
