"""Measure saved weights on the test split of the data they were trained on, after each time step.

Example: spikformer evaluate runs/digits/last.safetensors
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console


@dataclass(frozen=True)
class Options:
    weights: Annotated[Path, tyro.conf.Positional]
    """A .safetensors file written by train."""
    json: bool = False
    """Print JSON instead of sentences."""


def run(options: Options) -> int:
    from spikformer.data import open_dataset
    from spikformer.models import load
    from spikformer.training import accuracy_after_steps

    model = load(options.weights)
    if "data" not in model.about:
        raise ValueError(f"{options.weights} does not say which data it was trained on; only `train` notes that.")
    data = open_dataset(model.about["data"])
    by_steps = accuracy_after_steps(model, data, "test")
    count = len(data.split("test"))
    if options.json:
        print(json.dumps({"test_accuracy": by_steps[-1], "accuracy_after_steps": by_steps, "samples": count}))
        return 0
    console = Console()
    console.print(f"Test accuracy {by_steps[-1]:.2%} on {count} samples of {data.name}", highlight=False)
    listed = ", ".join(f"{accuracy:.2%}" for accuracy in by_steps)
    console.print(f"after each time step: {listed}", highlight=False)
    return 0
