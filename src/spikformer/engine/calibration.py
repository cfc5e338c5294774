"""From which density on is it cheaper to multiply everything than to add events? Measured once per machine, and kept.

Both ways compute the same layer of a typical size on one core; the densities where one and then the other is quicker
enclose the crossover. It depends on the steps that share the loading of a weight, up to four. It is kept in the user's
cache folder under the processor, the instruction set, the steps and the release.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

import spikformer
from spikformer.disk import cache_folder, write_atomically
from spikformer.engine.native import native_core
from spikformer.engine.reference import GROUP_STEPS, pack_spikes

_ROWS, _INPUTS, _OUTPUTS = 16, 384, 384
_DENSITIES = (0.02, 0.05, *np.arange(0.1, 1.01, 0.1).tolist())
_REPEATS = 15
_PATIENCE = 0.05  # seconds: a slow instruction set is measured less often
_FILE = "crossover.json"
_MOST_BYTES = 2**16  # of that file: hundreds of entries

_measured: dict[str, float] = {}


def crossover_of(instructions: str, time_steps: int) -> float:
    """The density at which both ways take the same time, from this process, the cache folder, or measured now."""
    steps = min(time_steps, GROUP_STEPS)
    key = f"{_processor()}, {instructions}, {steps} steps, spikformer {spikformer.__version__}"
    if key not in _measured:
        found = _remembered().get(key)
        if found is None:
            found = measure_crossover(instructions, steps)
            _remember(key, found)
        _measured[key] = found
    return _measured[key]


def measure_crossover(instructions: str, steps: int) -> float:
    """Takes about a tenth of a second."""
    kernels = native_core().Kernels(instructions)
    rng = np.random.default_rng(0)
    layer = kernels.pack(rng.standard_normal((_OUTPUTS, 1, _INPUTS), np.float32), np.zeros(_OUTPUTS, np.float32))
    if kernels.multiplies_whole:
        dense = partial(kernels.whole_linear, layer, rng.integers(0, 2, (_ROWS * steps, _INPUTS), np.uint8))
    else:
        dense = partial(kernels.dense_linear, layer, rng.random((_ROWS * steps, _INPUTS), np.float32))
    below, below_share = 0.0, 0.0
    for density in _DENSITIES:
        spikes = pack_spikes(draw_spikes(rng, density, (_ROWS, steps, _INPUTS)))
        share = typical_ratio(partial(kernels.spike_linear, layer, spikes), dense)
        if share >= 1:  # between this density and the last, as if time grew along a line
            return below + (density - below) * (1 - below_share) / (share - below_share)
        if density >= 0.1 and share < density / 2:  # events cost no more than their share: dense will not catch up
            return 1.0
        below, below_share = density, share
    return 1.0


def draw_spikes(rng: np.random.Generator, density: float, shape: tuple[int, int, int]) -> np.ndarray:
    """Spikes [rows, T, K] as in trained networks: of a part of the inputs, at a third of the steps or more."""
    rows, _, inputs = shape
    active = rng.random((rows, 1, inputs)) < min(1.0, 3 * density)
    return active & (rng.random(shape) < max(1 / 3, density))


def typical_ratio(call: Callable[[], object], other: Callable[[], object]) -> float:
    """How much longer one takes than the other: the median over turns, because some units have fast and slow phases."""
    seconds, of_other = in_turns(call, other)
    return float(np.median(np.divide(seconds, of_other)))


def in_turns(*calls: Callable[[], object]) -> list[list[float]]:
    """Seconds of each, several times; in turns, so that all see the same machine."""
    seconds: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + _PATIENCE
    for repeat in range(_REPEATS):
        if repeat > 0 and time.perf_counter() > end:
            break
        for call, taken in zip(calls, seconds, strict=True):
            begin = time.perf_counter()
            call()
            taken.append(time.perf_counter() - begin)
    return seconds


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except (OSError, ValueError):
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _remembered() -> dict[str, float]:
    """What the file says that can be a crossover; a file that is damaged counts as missing."""
    try:
        path = cache_folder() / _FILE
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: nested too deeply, or a home that nobody knows
        return {}
    kept = found.items() if isinstance(found, dict) else ()
    return {key: density for key, density in kept if isinstance(density, float) and 0 < density <= 1}


def _remember(key: str, density: float) -> None:
    """For the next process; a folder that cannot be written to only costs it the time to measure again."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(_remembered() | {key: density}, indent=1)
        write_atomically(folder / _FILE, content.encode(), durable=False)
    except (OSError, RuntimeError):
        pass
