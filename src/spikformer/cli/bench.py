"""Measure how fast weights (in PyTorch) or an engine answer on this machine, on samples of their own data.

Example: spikformer bench runs/digits/best.engine
Example: spikformer bench best.safetensors --data DIR --batch-sizes 1 32 --threads 2
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

if TYPE_CHECKING:
    from torch import Tensor

    from spikformer.engine import Engine, OpProfile

_FEWEST = 5  # calls, however long they take


@dataclass(frozen=True)
class Options:
    weights: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """An .engine file written by compile, or a .safetensors file written by train."""
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for embedded sets."""
    batch_sizes: tuple[int, ...] = (1, 32)
    """Samples in a call."""
    threads: int | None = None
    """Threads to use; by default as many as this process may."""
    seconds: float = 3.0
    """How long to measure each batch size."""
    json: bool = False
    """Print JSON instead of tables."""


@dataclass(frozen=True)
class Speed:
    """Of calls with batches of one size: latencies of a call, and images/s at the quickest."""

    batch_size: int
    images_per_second: float
    fastest_ms: float
    median_ms: float
    p90_ms: float
    p99_ms: float
    calls: int


def run(options: Options) -> int:
    from spikformer.cli.samples import bar
    from spikformer.engine import Engine
    from spikformer.engine.native import usable_threads
    from spikformer.runs.measure import prepared_batches
    from spikformer.runs.trained import load_answering, open_data

    if not options.batch_sizes or min(options.batch_sizes) < 1:
        raise ValueError(f"--batch-sizes must be whole numbers of at least 1, got {options.batch_sizes}.")
    if not 0 < options.seconds < float("inf"):
        raise ValueError(f"--seconds must be above 0, got {options.seconds}.")
    threads = usable_threads() if options.threads is None else options.threads
    if threads < 1:
        raise ValueError(f"--threads must be at least 1, got {threads}.")
    model = load_answering(options.weights)
    data = open_data(model, options.data)
    if isinstance(model, Engine):
        model = model.with_threads(threads)
        answer: Callable[[Any], Any] = model
        how = f"engine, {model.instructions}"
    else:
        answer, how = _plain(model, threads), "PyTorch"
    thresholds = _thresholds(model) if isinstance(model, Engine) else None
    found = []
    with bar("Measuring", len(options.batch_sizes), enabled=not options.json) as advance:
        for size in options.batch_sizes:
            inputs = next(prepared_batches(data, "test", size, size), None)
            if inputs is None or inputs.shape[1 if data.events else 0] < size:
                raise ValueError(f"{data.name} has fewer than {size} samples for test that can be read.")
            found.append((measure(partial(answer, inputs), size, options.seconds), inputs))
            advance(1)
    layers = _quietest(model, found[-1][1]) if isinstance(model, Engine) else []
    if options.json:
        speeds, profiles = [asdict(speed) for speed, _ in found], [asdict(layer) for layer in layers]
        described = {"how": how, "num_threads": threads, "density_thresholds": thresholds}
        print(json.dumps(described | {"speeds": speeds, "layers": profiles}))
        return 0
    _show(how, threads, [speed for speed, _ in found])
    if thresholds is not None:
        _show_layers(layers, options.batch_sizes[-1], thresholds)
    return 0


def measure(call: Callable[[], Any], batch_size: int, seconds: float) -> Speed:
    """Call it again and again, after one call that does not count."""
    call()
    return speed_of(batch_size, time_calls(call, seconds, _FEWEST))


def time_calls(call: Callable[[], Any], seconds: float, fewest: int) -> list[float]:
    """Milliseconds of each call."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds
    while len(latencies) < fewest or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        latencies.append((time.perf_counter() - begin) * 1e3)
    return latencies


def speed_of(batch_size: int, latencies: list[float]) -> Speed:
    import numpy as np

    median, p90, p99 = np.percentile(latencies, (50, 90, 99)).tolist()
    fastest = min(latencies)
    return Speed(batch_size, batch_size / fastest * 1e3, fastest, median, p90, p99, len(latencies))


def _plain(model: Any, threads: int) -> Callable[[Tensor], Tensor]:
    import torch

    from spikformer.io import keep_freed_memory

    keep_freed_memory()
    torch.set_num_threads(threads)
    dtype = model.like.dtype

    def answer(inputs: Tensor) -> Tensor:
        with torch.no_grad():
            return model(inputs.to(dtype))

    return answer


def _thresholds(engine: Engine) -> list[float]:
    """The densities above which products are dense, by kind: set for the engine, or measured on this machine."""
    from spikformer.engine.autotune import KINDS, density_thresholds

    given = engine.density_threshold
    if given is not None:
        return [given] * len(KINDS)
    return list(density_thresholds(engine.instructions, engine.program.time_steps))


def _quietest(engine: Engine, inputs: Tensor) -> list[OpProfile]:
    """Of several calls, the one that other programs disturbed least."""
    profiles = (engine.profile(inputs) for _ in range(_FEWEST))
    return min(profiles, key=lambda profile: sum(layer.list_ms + layer.product_ms for layer in profile))


def _show(how: str, threads: int, speeds: list[Speed]) -> None:
    from spikformer.cli.terminal import print_table, say

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
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
    from spikformer.cli.terminal import print_table, say

    window, spikes, counts = thresholds
    say(
        f"\nOne batch of {batch_size}, layer by layer; Q, K and V share a line. On this machine, products are dense "
        f"above a density of {window:.0%} (3×3 windows over spikes), {spikes:.0%} (spikes) and {counts:.0%} (counts)."
    )
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Layer")
    for heading in ("Input density", "Listing ms", "Product ms", "Computed densely"):
        table.add_column(heading, justify="right")
    for layer in layers:
        density = "–" if layer.density is None else f"{layer.density:.1%}"
        times = (f"{layer.list_ms:.3f}", f"{layer.product_ms:.3f}")
        table.add_row(layer.name, density, *times, f"{layer.dense_share:.0%} of samples")
    print_table(table)
