"""The density above which a dense product is cheaper than adding events. Measured once per machine, and kept.

The executor itself is timed, on one core: a program with one product of a typical size, once by events and once
densely, at rising densities, for half a second or so for each kind of product. The threshold depends on the kind of
product and on the steps that share the loading of a weight, up to four. It is kept in the user's cache folder under the
processor, the instruction set, the steps and the release.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import numpy as np

import spikformer
from spikformer.engine.native import MODES, Mode, build_engine
from spikformer.engine.ops import NeuronConstants
from spikformer.engine.program import Builder, Program
from spikformer.engine.reference import GROUP_STEPS
from spikformer.io import cache_folder, processor_name, write_atomically

if TYPE_CHECKING:
    from spikformer import _native

KINDS = ("window", "spikes", "counts")
"""A window over spikes (measured at 3×3), spikes, counts; in the order of the native core."""

_SIDE, _CHANNELS = 6, 256
_DENSITIES = (0.02, 0.05, *np.arange(0.1, 1.01, 0.1).tolist())
_REPEATS = 5
_MAX_SECONDS = 0.5  # for one kind; then what is known so far decides, after one measurement at least
_FILE = "density_thresholds.json"
_MAX_BYTES = 2**16  # of that file: hundreds of entries
_TIMED = "timed"

_known: dict[str, tuple[float, ...]] = {}


def density_thresholds(instructions: str, time_steps: int) -> tuple[float, ...]:
    """For each of KINDS, from this process, the cache folder, or measured now (about a second)."""
    steps = min(time_steps, GROUP_STEPS)
    key = f"{processor_name()}, {instructions}, {steps} steps, spikformer {spikformer.__version__}"
    if key not in _known:
        found = _read_cache().get(key)
        if found is None:
            found = tuple(measure_threshold(kind, instructions, steps) for kind in KINDS)
            _write_cache(key, found)
        _known[key] = found
    return _known[key]


def measure_threshold(kind: str, instructions: str, steps: int) -> float:
    """The density at which both ways take the same time, as if it grew along a line between two that were measured.

    A slow instruction set runs out of time before that: then the line continues from the last one, because events take
    time in proportion to their number.
    """
    engine = build_engine(_program(kind), 1, instructions)
    rng = np.random.default_rng(0)
    end = time.perf_counter() + _MAX_SECONDS
    below, below_ratio = 0.0, 0.0
    for density in _DENSITIES:
        if below_ratio > 0 and time.perf_counter() > end:
            return min(1.0, below / below_ratio)
        ratio = _ratio(engine, draw_spikes(rng, density, steps), end)
        if ratio >= 1:
            return below + (density - below) * (1 - below_ratio) / (ratio - below_ratio)
        if density >= 0.1 and ratio < density / 2:  # events cost no more than their share: dense will not catch up
            return 1.0
        below, below_ratio = density, ratio
    return 1.0


def draw_spikes(rng: np.random.Generator, density: float, steps: int) -> np.ndarray:
    """Spikes [T, 1, C, H, W] as in trained networks: of a part of the inputs, at a third of the steps or more."""
    shape = (1, _CHANNELS, _SIDE, _SIDE)
    active = rng.random(shape) < min(1.0, 3 * density)
    return (active & (rng.random((steps, *shape)) < max(1 / 3, density))).astype(np.float32)


def _program(kind: str) -> Program:
    """Its input are spikes; the product that is timed reads them, as they are or counted twice."""
    rng = np.random.default_rng(0)
    neuron, zeros = NeuronConstants(1, 0, 1, 0), np.zeros(_CHANNELS, np.float32)
    width = 3 if kind == "window" else 1
    weights = rng.standard_normal((_CHANNELS, width, width, _CHANNELS)).astype(np.float32) / _CHANNELS
    build = Builder()
    encoded = build.convolve("encoded", 0, np.eye(_CHANNELS, dtype=np.float32)[:, None, None], zeros)
    spikes = build.fire("spikes", encoded, neuron)
    x = build.add("counts", spikes, spikes) if kind == "counts" else spikes
    fired = build.fire("fired", build.convolve(_TIMED, x, weights, zeros), neuron)
    build.read_out("head", build.add("sum", fired, fired), np.ones((1, _CHANNELS), np.float32), zeros[:1])
    return Program(tuple(build.ops), _CHANNELS, 1, (_SIDE, _SIDE))


def _ratio(engine: _native.Engine, frames: np.ndarray, end: float) -> float:
    """How much longer events take than the dense product: the median over turns, so that both see the same machine."""
    ratios: list[float] = []
    while not ratios or (len(ratios) < _REPEATS and time.perf_counter() < end):
        ratios.append(_seconds(engine, frames, "events") / _seconds(engine, frames, "dense"))
    return float(np.median(ratios))


def _seconds(engine: _native.Engine, frames: np.ndarray, mode: Mode) -> float:
    engine.mode = MODES.index(mode)
    engine.run(frames, len(frames), None, None, np.empty((len(frames), 1, 1), np.float32))
    report = next(report for report in engine.reports() if report["name"] == _TIMED)
    return report["list_seconds"] + report["product_seconds"]


def _read_cache() -> dict[str, tuple[float, ...]]:
    """What the file says that can be thresholds; a file that is damaged counts as missing."""
    try:
        path = cache_folder() / _FILE
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: nested too deeply, or an unknown home folder
        return {}
    kept = found.items() if isinstance(found, dict) else ()
    return {key: tuple(densities) for key, densities in kept if _are_densities(densities)}


def _are_densities(value: object) -> bool:
    if not isinstance(value, list) or len(value) != len(KINDS):
        return False
    return all(isinstance(density, float) and 0 < density <= 1 for density in value)


def _write_cache(key: str, densities: tuple[float, ...]) -> None:
    """For the next process; a folder that cannot be written to only costs it the time to measure again."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(_read_cache() | {key: densities}, indent=1)
        write_atomically(folder / _FILE, content.encode(), durable=False)
    except (OSError, RuntimeError):
        pass
