"""Train a model on scikit-learn's digits and save it.

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
    """A model for 8×8 images of one channel; `spikformer models` lists all."""
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

    from spikformer.data import load_digits
    from spikformer.memory import keep_freed_memory
    from spikformer.models import create_model, save
    from spikformer.training import evaluate, train

    if options.epochs < 1:
        raise ValueError(f"--epochs must be at least 1, got {options.epochs}.")
    keep_freed_memory()
    torch.manual_seed(options.seed)
    model = create_model(options.model)
    if (model.config.image_size, model.config.in_channels, model.config.num_classes) != ((8, 8), 1, 10):
        raise ValueError(
            f"So far training reads the embedded digits, 8×8 of one channel; {options.model} does not fit them. "
            "Try spikformer_tiny_digits."
        )
    output = options.output or Path("runs") / options.model
    output.mkdir(parents=True, exist_ok=True)
    train_split, test_split = load_digits()
    started = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=options.json) as progress:
        bar = progress.add_task("Training", total=options.epochs)
        for epoch in train(model, train_split, epochs=options.epochs, seed=options.seed):
            progress.update(bar, advance=1, description=f"Epoch {epoch.number}: loss {epoch.loss:.3f}")
    seconds = time.perf_counter() - started
    accuracy = evaluate(model, test_split)
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
