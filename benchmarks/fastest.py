"""How long calls take at their best: a part of the engine's benchmarks."""

from __future__ import annotations

from collections.abc import Callable

from spikformer.engine.calibration import in_turns


def fastest(*calls: Callable[[], object]) -> list[float]:
    """Seconds of each, the least of several."""
    return [min(taken) for taken in in_turns(*calls)]
