"""Measure saved weights on the test split of scikit-learn's digits: accuracy, and accuracy after each time step.

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
    """A .safetensors file written by train or import."""
    json: bool = False
    """Print JSON instead of sentences."""


def run(options: Options) -> int:
    import torch

    from spikformer.data import load_digits
    from spikformer.models import load

    model = load(options.weights)
    _, test = load_digits()
    with torch.no_grad():
        steps = model.forward_steps(test.images)  # [T, B, K]
    counts = torch.arange(1, len(steps) + 1)[:, None, None]
    predictions = (steps.cumsum(0) / counts).argmax(-1)  # the mean readout after 1, 2, … T steps
    by_steps = (predictions == test.labels).double().mean(1).tolist()
    if options.json:
        print(json.dumps({"test_accuracy": by_steps[-1], "accuracy_after_steps": by_steps, "images": len(test.labels)}))
        return 0
    console = Console()
    console.print(f"Test accuracy {by_steps[-1]:.2%} on {len(test.labels)} digits", highlight=False)
    listed = ", ".join(f"{accuracy:.2%}" for accuracy in by_steps)
    console.print(f"after each time step: {listed}", highlight=False)
    return 0
