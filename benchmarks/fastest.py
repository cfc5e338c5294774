"""How long calls take at their best: a part of the engine's benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable

_REPEATS = 15
_MAX_SECONDS = 0.05  # a slow instruction set is measured less often


def fastest(*calls: Callable[[], object]) -> list[float]:
    """Seconds of each, the least of several."""
    return [min(taken) for taken in in_turns(*calls)]


def in_turns(*calls: Callable[[], object]) -> list[list[float]]:
    """Seconds of each, several times; in turns, so that all see the same machine."""
    seconds: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + _MAX_SECONDS
    for repeat in range(_REPEATS):
        if repeat > 0 and time.perf_counter() > end:
            break
        for call, taken in zip(calls, seconds, strict=True):
            begin = time.perf_counter()
            call()
            taken.append(time.perf_counter() - begin)
    return seconds
