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
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for digits and digits_dvs."""
    workers: int = 0
    """Processes that read ahead."""
    strict: bool = False
    """Stop at a file that cannot be read, instead of leaving it out."""
    json: bool = False
    """Print JSON instead of sentences."""


def run(options: Options) -> int:
    from spikformer.data import open_for_model
    from spikformer.models import load
    from spikformer.training import measure_accuracy

    model = load(options.weights)
    if "data" not in model.about:
        raise ValueError(f"{options.weights} does not say which data it was trained on; only `train` notes that.")
    data = open_for_model(
        model.config, model.about["data"], options.data, class_names=model.about.get("class_names"), validation_share=0
    )
    test = measure_accuracy(model, data, "test", workers=options.workers, strict=options.strict)
    by_steps = test.after_steps
    if options.json:
        report = {"test_accuracy": by_steps[-1], "accuracy_after_steps": by_steps, "samples": test.num_samples}
        print(json.dumps(report | {"unreadable": test.unreadable}))
        return 0
    console = Console()
    console.print(f"Test accuracy {by_steps[-1]:.2%} on {test.num_samples} samples of {data.name}", highlight=False)
    if test.unreadable:
        console.print(f"{test.unreadable} more could not be read and are not counted", highlight=False)
    listed = ", ".join(f"{accuracy:.2%}" for accuracy in by_steps)
    console.print(f"after each time step: {listed}", highlight=False)
    return 0
