"""Clocks of 32 bits, which start again from zero every 71.6 minutes."""

from __future__ import annotations

import numpy as np

_QUARTER = 1 << 30


def unwrap(stamps: np.ndarray) -> np.ndarray:
    """uint32 microseconds as int64 that run on where the clock wrapped.

    A wrap leaps from the clock's last quarter into its first. Any other step back (a clock that was reset, a damaged
    stamp) stays one, for `recording.check` to refuse.
    """
    time_us = stamps.astype(np.int64)
    wraps = np.flatnonzero((stamps[:-1] >= 3 * _QUARTER) & (stamps[1:] < _QUARTER))
    if len(wraps):
        leaps = np.zeros_like(time_us)
        leaps[wraps + 1] = 1 << 32
        time_us += leaps.cumsum()
    return time_us
