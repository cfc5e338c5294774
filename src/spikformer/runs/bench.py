"""How fast weights (in PyTorch) or an engine answer on this machine, on samples of their own data."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spikformer.data import DataSet
from spikformer.engine import Engine, OpProfile, compile_engine
from spikformer.engine.autotune import KINDS, density_thresholds
from spikformer.engine.native import usable_threads
from spikformer.errors import FieldError
from spikformer.models import SpikingNetwork
from spikformer.runs.evaluate import open_evaluated
from spikformer.runs.measure import held_out_split, prepared_batches
from spikformer.runs.process import keep_freed_memory
from spikformer.runs.trained import data_path, open_data
from spikformer.validation import check_at_least

_FEWEST = 5  # calls, however long they take
_LATENCY_SAMPLES, _LATENCY_SECONDS = 16, 0.05  # and for each of them


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


@dataclass(frozen=True)
class Benchmark:
    how: str
    """PyTorch, or the engine with its instruction set."""
    num_threads: int
    speeds: list[Speed]
    density_thresholds: list[float] | None
    """Of an engine: the densities above which products are dense, by kind."""
    layers: list[OpProfile]
    """Of an engine: one call with the last batch size, op by op."""


def bench(
    model: nn.Module | Engine | str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | DataSet | None = None,
    batch_sizes: Sequence[int] = (1, 32),
    threads: int | None = None,
    seconds: float = 3.0,
    on_size: Callable[[int], None] = lambda _: None,
) -> Benchmark:
    """Time calls on samples of the test split, `seconds` for each batch size.

    model    a network, an engine, or the path of either or of a run folder
    data     as in `evaluate`: by default what the run was trained on
    threads  by default as many as this process may use
    on_size  called with 1 after each batch size, for a progress bar
    """
    if not batch_sizes or min(batch_sizes) < 1:
        raise FieldError("batch_sizes", f"batch_sizes must be integers of at least 1, got {tuple(batch_sizes)}.")
    if not 0 < seconds < float("inf"):
        raise FieldError("seconds", f"seconds must be above 0, got {seconds}.")
    threads = usable_threads() if threads is None else threads
    check_at_least("threads", threads, 1)
    network, opened = open_evaluated(model, data)
    if isinstance(network, Engine):
        network = network.with_threads(threads)
        answer: Callable[[Any], Any] = network
    else:
        answer = _in_torch(network, threads)
    speeds, inputs = [], None
    for size in batch_sizes:
        inputs = next(prepared_batches(opened, "test", size, size), None)
        if inputs is None or inputs.shape[1 if opened.events else 0] < size:
            raise FieldError("batch_sizes", f"{opened.name} has fewer than {size} samples for test that can be read.")
        speeds.append(measure_speed(partial(answer, inputs), size, seconds))
        on_size(1)
    if not isinstance(network, Engine):
        return Benchmark("PyTorch", threads, speeds, None, [])
    layers = _least_disturbed(network, inputs)
    return Benchmark(f"engine, {network.instructions}", threads, speeds, _thresholds(network), layers)


def engine_latency_ms(weights: Path, data: Path | None = None) -> float | None:
    """Of a weights file: the engine with one sample on one thread, the mean over several of the fastest call of each.

    None for networks that the engine does not run, and where there is no native core. One thread, so that networks
    which are measured side by side do not wait for each other.
    """
    try:
        engine = compile_engine(weights, 1)
    except (ValueError, ImportError):
        return None
    opened = open_data(engine, data or data_path(weights))
    samples = prepared_batches(opened, held_out_split(opened), _LATENCY_SAMPLES, 1)
    return fmean(measure_speed(partial(engine, sample), 1, _LATENCY_SECONDS).fastest_ms for sample in samples)


def measure_speed(call: Callable[[], Any], batch_size: int, seconds: float) -> Speed:
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
    median, p90, p99 = np.percentile(latencies, (50, 90, 99)).tolist()
    fastest = min(latencies)
    return Speed(batch_size, batch_size / fastest * 1e3, fastest, median, p90, p99, len(latencies))


def _in_torch(model: SpikingNetwork, threads: int) -> Callable[[Tensor], Tensor]:
    keep_freed_memory()
    torch.set_num_threads(threads)
    dtype = model.like.dtype

    def answer(inputs: Tensor) -> Tensor:
        with torch.no_grad():
            return model(inputs.to(dtype))

    return answer


def _thresholds(engine: Engine) -> list[float]:
    """Set for the engine, or measured on this machine."""
    given = engine.density_threshold
    if given is not None:
        return [given] * len(KINDS)
    return list(density_thresholds(engine.instructions, engine.program.time_steps))


def _least_disturbed(engine: Engine, inputs: Any) -> list[OpProfile]:
    """Of several profiles, the one that other programs slowed least."""
    profiles = (engine.profile(inputs) for _ in range(_FEWEST))
    return min(profiles, key=lambda profile: sum(layer.list_ms + layer.product_ms for layer in profile))
