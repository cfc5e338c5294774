"""Single neurons in time: which fire when, and how their membranes come to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spikformer.visualise.style import COLOURS, INK, drawable, house_style, new_figure, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARK = 0.35  # half of a spike's width, in steps
_POINTS_PER_INCH = 72
_HIGHEST = 6.0


@house_style()
def raster_figure(spikes: np.ndarray, title: str = "") -> Figure:
    """Spikes [T, neurons]: a row for each neuron, a mark for each spike; above, how many fire at each step."""
    from matplotlib.ticker import MaxNLocator

    if spikes.ndim != 2 or spikes.size == 0:
        raise ValueError(f"A raster's spikes are [steps, neurons], got {list(spikes.shape)}.")
    num_steps, num_neurons = spikes.shape
    height = float(np.clip(0.1 * num_neurons, 1.5, _HIGHEST))
    figure = new_figure(float(np.clip(2 + 0.4 * num_steps, 4, 12)), height + 1.5, "Which neurons fire at which step.")
    above, axes = figure.subplots(2, 1, sharex=True, height_ratios=(0.7, height))
    above.bar(range(1, num_steps + 1), spikes.astype(bool).sum(1), 2 * _MARK, color=COLOURS[0])
    above.set_ylabel("spikes", rotation=0, ha="right", va="center")
    if title:
        above.set_title(drawable(title))
    steps, neurons = np.nonzero(spikes)
    # One path with breaks, not thousands of marks: an SVG stays small.
    x = np.stack([steps + 1 - _MARK, steps + 1 + _MARK, np.full(len(steps), np.nan)], -1)
    thickness = max(0.7 * height * _POINTS_PER_INCH / num_neurons, 0.5)
    axes.plot(x.ravel(), neurons.repeat(3) + 1.0, color=INK, linewidth=thickness, solid_capstyle="butt")
    axes.set_ylim(num_neurons + 0.5, 0.5)
    axes.set_ylabel("neuron")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=8))
    _count_from_one(axes, num_steps)
    return figure


@house_style()
def membrane_figure(
    membrane: np.ndarray, spikes: np.ndarray, v_threshold: float, names: Sequence[str] = (), v_reset: float = 0.0
) -> Figure:
    """The membrane H before each spike and the spikes, both [T, neurons]: a trace each, which falls where it fires."""
    if membrane.ndim != 2 or membrane.size == 0 or spikes.shape != membrane.shape:
        raise ValueError(
            f"Membrane and spikes are both [steps, neurons], got {list(membrane.shape)} and {list(spikes.shape)}."
        )
    num_steps, num_neurons = membrane.shape
    names = names or [f"neuron {number}" for number in range(1, num_neurons + 1)]
    if len(names) != num_neurons:
        raise ValueError(f"{num_neurons} traces need as many names, got {len(names)}.")
    width = float(np.clip(3 + 0.3 * num_steps, 5, 12))
    figure = new_figure(
        width, 1.0 + 0.9 * num_neurons, "Membranes of single neurons, their threshold and their spikes."
    )
    rows = figure.subplots(num_neurons, 1, sharex=True, squeeze=False)[:, 0]
    for axes, name, trace, fired in zip(rows, names, membrane.T, spikes.T.astype(bool), strict=True):
        times, voltages = _trace(trace, fired, v_reset)
        axes.axhline(v_threshold, color=COLOURS[1], linewidth=1, linestyle="--", label="threshold")
        axes.plot(times, voltages, color=COLOURS[0], linewidth=1.5, label="membrane")
        axes.plot(np.flatnonzero(fired) + 1, trace[fired], "o", color=COLOURS[1], markersize=5, label="spike")
        axes.set_title(shortened(name), fontsize=9)
        axes.margins(y=0.15)
    _count_from_one(rows[-1], num_steps)
    rows[-1].set_xlim(0, num_steps + 0.5)
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    return figure


def _trace(membrane: np.ndarray, fired: np.ndarray, v_reset: float) -> tuple[np.ndarray, np.ndarray]:
    """From rest through every H, down to the reset at once where the neuron fired."""
    steps = np.arange(1, len(membrane) + 1)
    times = np.concatenate([[0], steps.repeat(2)])
    voltages = np.stack([membrane, np.where(fired, v_reset, membrane)], -1)
    return times, np.concatenate([[v_reset], voltages.ravel()])


def _count_from_one(axes: Axes, num_steps: int) -> None:
    axes.set_xlabel("step")
    axes.set_xlim(0.4, num_steps + 0.6)
    if num_steps <= 20:
        axes.set_xticks(range(1, num_steps + 1))
