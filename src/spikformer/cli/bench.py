"""Measure how fast weights (in PyTorch) or an engine answer on this machine, on samples of their own data.

Example: spikformer bench runs/spikformer_tiny_digits/best.engine
Example: spikformer bench best.safetensors --data DIR --batch-sizes 1 32 --threads 2
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from spikformer.cli.console import bar, cell, plain_table, print_table, say

if TYPE_CHECKING:
    from spikformer.engine import OpProfile
    from spikformer.runs.bench import Speed


@dataclass(frozen=True)
class Options:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, a .safetensors file of it, an .engine file of `compile`, or a shipped name (`models --weights`)."""
    data: Path | None = None
    """Folder or archive with the data set's files; by default where the run found them."""
    batch_sizes: tuple[int, ...] = (1, 32)
    """Samples in a call."""
    threads: int | None = None
    """Threads to use; by default as many as this process may."""
    seconds: float = 3.0
    """How long to measure each batch size."""
    json: bool = False
    """Print JSON instead of tables."""


def run(options: Options) -> int:
    from spikformer.runs.bench import bench

    with bar("Measuring", len(options.batch_sizes), enabled=not options.json) as advance:
        found = bench(
            options.weights,
            data=options.data,
            batch_sizes=options.batch_sizes,
            threads=options.threads,
            seconds=options.seconds,
            on_size=advance,
        )
    if options.json:
        print(json.dumps(asdict(found)))
        return 0
    _show(found.how, found.num_threads, found.speeds)
    if found.density_thresholds is not None:
        _show_layers(found.layers, options.batch_sizes[-1], found.density_thresholds)
    return 0


def _show(how: str, threads: int, speeds: list[Speed]) -> None:
    table = plain_table()
    for heading in ("Batch", "Images/s", "Fastest ms", "Median", "90 %", "99 %", "Calls"):
        table.add_column(heading, justify="right")
    for speed in speeds:
        times = (speed.fastest_ms, speed.median_ms, speed.p90_ms, speed.p99_ms)
        table.add_row(
            str(speed.batch_size),
            f"{speed.images_per_second:.1f}",
            *(f"{milliseconds:.2f}" for milliseconds in times),
            str(speed.calls),
        )
    plural = "" if threads == 1 else "s"
    say(f"{how}, {threads} thread{plural}; images/s are those of the fastest call")
    print_table(table)


def _show_layers(layers: list[OpProfile], batch_size: int, thresholds: list[float]) -> None:
    window, spikes, counts = thresholds
    say("")
    say(
        f"One batch of {batch_size}, layer by layer; Q, K and V share a line. On this machine, products are dense "
        f"above a density of {window:.0%} (3×3 windows over spikes), {spikes:.0%} (spikes) and {counts:.0%} (counts)."
    )
    table = plain_table()
    table.add_column("Layer")
    for heading in ("Input density", "Listing ms", "Product ms", "Computed densely"):
        table.add_column(heading, justify="right")
    for layer in layers:
        density = "–" if layer.density is None else f"{layer.density:.1%}"
        times = (f"{layer.list_ms:.3f}", f"{layer.product_ms:.3f}")
        table.add_row(cell(layer.name), density, *times, f"{layer.dense_share:.0%} of samples")
    print_table(table)
