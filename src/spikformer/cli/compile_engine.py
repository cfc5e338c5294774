"""Turn trained weights into an engine: one file that answers event by event on a plain CPU, without PyTorch.

Example: spikformer compile runs/spikformer_tiny_digits
Example: spikformer compile best.safetensors --output net.engine
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from spikformer.cli.console import say


@dataclass(frozen=True)
class Options:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, a .safetensors file written by train or import, or a shipped name (`models --weights`)."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Where to write; by default beside the weights, ending in .engine."""
    json: bool = False
    """Print JSON instead of text."""


def run(options: Options) -> int:
    from spikformer.runs.trained import compile_weights

    engine, output = compile_weights(options.weights, options.output)
    described = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "instructions": engine.instructions,
        "num_threads": engine.num_threads,
    }
    if options.json:
        print(json.dumps(described))
        return 0
    say(f"{engine}, {output.stat().st_size / 1e6:.1f} MB")
    say(f"Wrote {output}")
    return 0
