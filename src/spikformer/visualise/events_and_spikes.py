"""Events beside the spikes they cause, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spikformer.visualise.mosaic import (
    EVENT_LEGEND,
    Colour,
    brightest_count,
    enlarged,
    event_picture,
    lit,
    mosaic,
    tile_side,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SPIKE_COLOUR: Colour = (240, 228, 66)  # Okabe and Ito's yellow: neither polarity has it


def events_and_spikes_figure(frames: np.ndarray, spikes: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Counts of events [T, 2, H, W] above spikes [T, H', W'] by layer, summed over channels; a column for each step.

    Full light is the same for all steps of a row, so that they can be compared.
    """
    _check(frames, spikes)
    layers = [_squared(counts) for counts in spikes.values()]
    frames = _squared(frames)
    side = max([tile_side(*frames.shape[-2:]), *(counts.shape[-1] for counts in layers)])
    brightest = brightest_count(frames)
    rows = [[enlarged(event_picture(frame, brightest), side, side) for frame in frames]]
    for counts in layers:
        brightest = brightest_count(counts)
        rows.append([enlarged(lit(step[None], brightest, (_SPIKE_COLOUR,)), side, side) for step in counts])
    figure, _ = mosaic(
        rows,
        ["events", *spikes],
        [f"step {step}" for step in range(1, len(frames) + 1)],
        title,
        "Frames of events, and below each the spikes that layers fire at its step.",
        [*EVENT_LEGEND, ("spikes", _SPIKE_COLOUR)],
    )
    return figure


def _squared(counts: np.ndarray) -> np.ndarray:
    """With silence around it, so that a wide sensor's rim is as dark as the rest."""
    height, width = counts.shape[-2:]
    rims = [
        ((longest - edge) // 2, (longest - edge + 1) // 2)
        for longest in (max(height, width),)
        for edge in (height, width)
    ]
    return np.pad(counts, [(0, 0)] * (counts.ndim - 2) + rims)


def _check(frames: np.ndarray, spikes: Mapping[str, np.ndarray]) -> None:
    if frames.ndim != 4 or frames.shape[1] != 2 or frames.size == 0:
        raise ValueError(f"Frames of events are [T, 2, H, W], got {list(frames.shape)}.")
    if not spikes:
        raise ValueError("There are no spikes to draw beside the events; give those of at least one layer.")
    for name, counts in spikes.items():
        if counts.ndim != 3 or len(counts) != len(frames) or counts.size == 0:
            raise ValueError(
                f"The spikes of {name} should be [T, H, W] with the T = {len(frames)} of the frames, "
                f"got {list(counts.shape)}."
            )
        if not (counts >= 0).all():
            raise ValueError(f"The spikes of {name} are counts, got negative numbers or NaN.")
