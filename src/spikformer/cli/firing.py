"""How often neurons fire, and what layers read: by layer and time step, streamed over the data.

Draws the rates of Q, K and V by block, of every layer by step, and the integers that enter each layer.

Example: spikformer firing runs/spikformer_tiny_digits
Example: spikformer firing best.safetensors --data DIR --max-samples 10000 --output firing.svg
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from spikformer.cli.console import Measured, bar, plain_table, print_table, say

if TYPE_CHECKING:
    from spikformer.analysis.firing import FiringReport


@dataclass(frozen=True)
class Options(Measured):
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, weights of it, such as runs/NAME/best.safetensors, or a shipped name (`models --weights`)."""
    output: Path | None = None
    """Where to draw, as .png, .svg or .pdf; WEIGHTS_firing.png beside the weights by default, and beside it
    …_attention and …_inputs."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    from spikformer.analysis.firing import measure_firing
    from spikformer.runs.figures import draw_firing
    from spikformer.runs.trained import output_beside, weights_path
    from spikformer.visualise.style import check_figure_path

    weights = weights_path(options.weights)
    output = options.output or output_beside(weights, f"{weights.stem}_firing.png")
    check_figure_path(output)
    model, data = options.open(options.weights)
    count = min(options.max_samples, len(data.split(options.split)))
    with bar("Measuring", count, enabled=not options.json) as advance:
        firing = measure_firing(model, options.batches(model, data), advance)
    figures = draw_firing(firing, output, options.weights)
    if options.json:
        print(json.dumps(_to_dict(firing) | {"figures": [str(path) for path in figures]}))
        return 0
    print_table(_table(firing))
    where = f"{firing.num_samples} samples of {data.name}, {options.split}; drawn in {', '.join(map(str, figures))}"
    say(where)
    return 0


def _table(firing: FiringReport) -> Table:
    table = plain_table()
    table.add_column("Neurons", no_wrap=True)
    table.add_column("Number", justify="right")
    table.add_column("Rate", justify="right")
    table.add_column("by time step")
    for name, rates in firing.rates.items():
        steps = " ".join(f"{rate:5.1%}" for rate in rates)
        table.add_row(name, f"{firing.num_neurons[name]:,}", f"{rates.mean():.1%}", steps)
    return table


def _to_dict(firing: FiringReport) -> dict[str, Any]:
    return {
        "num_samples": firing.num_samples,
        "time_steps": firing.time_steps,
        "rates": {name: rates.tolist() for name, rates in firing.rates.items()},
        "num_neurons": firing.num_neurons,
        "inputs": {
            name: {
                "mean": seen.mean.tolist(),
                "density": seen.density.tolist(),
                "histogram": seen.histogram.tolist(),
                "num_fractions": seen.num_fractions.tolist(),
                "binary": seen.binary,
            }
            for name, seen in firing.inputs.items()
        },
        "attention": {
            layer: {name: rates.tolist() for name, rates in operands.items()}
            for layer, operands in firing.operands.items()
        },
    }
