"""Write one HTML file in which a network runs: draw or drop inputs, watch spikes, attention and cost, change neurons.

The file holds the engine, the network and samples. It opens from disk, without a network connection.

Example: spikformer page
Example: spikformer page runs/spikformer_tiny_digits -o digits.html
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
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")] = "digits"
    """A run folder, weights, an engine file, or a shipped name (`models --weights`)."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """The page; page.html beside the weights by default, for a shipped network in the current folder."""
    data: Path | None = None
    """Folder or archive with the data set's files, of which test samples come along; digits need none."""
    samples: int = 20
    """How many samples come along; 0 for none."""
    json: bool = False
    """Print JSON instead of text."""


def run(options: Options) -> int:
    from spikformer.page import write_page
    from spikformer.runs.trained import output_beside, weights_path

    output = options.output or output_beside(weights_path(options.weights), "page.html")
    page = write_page(options.weights, output, data=options.data, num_samples=options.samples)
    if options.json:
        described = {"page": str(page.path), "bytes": page.num_bytes}
        print(json.dumps(described | {"engine_bytes": page.engine_bytes, "samples": page.num_samples}))
        return 0
    say(f"page: {page.path}, {page.num_bytes / 1e6:.1f} MB with {page.num_samples} samples; open it in a browser")
    return 0
