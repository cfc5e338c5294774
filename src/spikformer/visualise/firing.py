"""Spikes: how often neurons fire and what layers read of it; in time, rasters, membranes, and events beside spikes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spikformer.errors import FieldError
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
from spikformer.visualise.style import (
    COLOURS,
    INK,
    SEQUENTIAL,
    drawable,
    house_style,
    new_figure,
    readable_on,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUMBERED_STEPS = 20  # beyond, numbers would not fit their cells
_ROW_HEIGHT = 0.26
# How values are distinguished: spikes in blue, larger ones warmer and warmer, zeros as little as can be seen.
_VALUE_COLOURS = {"1": "#0072B2", "2": "#E69F00", "3": "#D55E00", "4 and above": "#CC79A7"}
_FRACTION_COLOUR = "#009E73"
_MARK = 0.35  # half of a spike's width, in steps
_POINTS_PER_INCH = 72
_HIGHEST = 6.0
_SPIKE_COLOUR: Colour = (240, 228, 66)  # Okabe and Ito's yellow: neither polarity has it


@house_style()
def firing_figure(rates: Mapping[int, Mapping[str, float]]) -> Figure:
    """Rates of "Q", "K" and "V" by the number of a block, as grouped bars (paper, appendix D.1).

    Blocks need not have all three: token attention has no V.
    """
    from matplotlib.ticker import PercentFormatter

    names = list(dict.fromkeys(name for block in rates.values() for name in block))
    if not names:
        raise FieldError("rates", "There are no rates of Q, K and V to draw; give those of one block at least.")
    num_blocks = len(rates)
    figure = new_figure(max(4.0, 1.6 + 0.7 * num_blocks), 3.4, "Firing rates of query, key and value by block.")
    axes = figure.subplots()
    width = 0.8 / len(names)
    for index, name in enumerate(names):
        there = [place for place, block in enumerate(rates.values()) if name in block]
        places = np.array(there) + (index - (len(names) - 1) / 2) * width
        values = [block[name] for block in rates.values() if name in block]
        axes.bar(places, values, 0.9 * width, color=COLOURS[index % len(COLOURS)], label=name)
    axes.set_xticks(range(num_blocks), [str(block) for block in rates])
    axes.set_xlabel("block")
    axes.set_ylabel("neurons that fire at a step")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.set_ylim(0, None if any(any(block.values()) for block in rates.values()) else 1)
    figure.legend(loc="outside upper right", ncols=len(names))
    return figure


@house_style()
def layer_rates_figure(names: Sequence[str], rates: np.ndarray) -> Figure:
    """Rates [layers, T] as a map: a row for each layer, a column for each step."""
    from matplotlib import colormaps
    from matplotlib.ticker import PercentFormatter

    if rates.ndim != 2 or len(names) != len(rates) or rates.size == 0:
        raise FieldError(
            "rates", f"Rates are [layers, steps] with a name for each layer, got {list(rates.shape)}, {len(names)}."
        )
    num_layers, num_steps = rates.shape
    numbered = num_steps <= _NUMBERED_STEPS
    width = 2.6 + _names_width(names) + (0.5 if numbered else 0.12) * num_steps
    figure = new_figure(max(4.5, width), 1.2 + _ROW_HEIGHT * num_layers, "Firing rates of every layer at every step.")
    axes = figure.subplots()
    top = float(rates.max()) or 1.0
    shades = axes.imshow(rates, vmin=0, vmax=top, aspect="auto")
    axes.set_yticks(range(num_layers), [shortened(name) for name in names])
    stride = max(1, num_steps // 20)
    axes.set_xticks(range(0, num_steps, stride), [str(step) for step in range(1, num_steps + 1, stride)])
    axes.set_xlabel("step")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if numbered:
        for (layer, step), rate in np.ndenumerate(rates):
            ink = readable_on(colormaps[SEQUENTIAL](rate / top))
            axes.text(step, layer, f"{100 * rate:.1f}", ha="center", va="center", color=ink, fontsize=8)
    bar = figure.colorbar(shades, format=PercentFormatter(1.0), label="neurons that fire", aspect=30)
    bar.outline.set_visible(False)
    return figure


@house_style()
def input_histogram_figure(
    names: Sequence[str], counts: np.ndarray, num_fractions: Sequence[float] | None = None
) -> Figure:
    """How many of the values that enter each layer are 0, 1, 2, …: counts [layers, values], as bars of shares.

    What is not an integer from 0 on, such as the pixels that enter the first layer, is counted in `num_fractions`.
    """
    from matplotlib.ticker import PercentFormatter

    fractions = np.zeros(len(names)) if num_fractions is None else np.asarray(num_fractions, float)
    if counts.ndim != 2 or counts.shape[1] < 2 or not 0 < len(counts) == len(names) == len(fractions):
        raise FieldError(
            "counts",
            "Counts are [layers, values 0, 1, …], with a name and a number of fractions for each layer, "
            f"got {list(counts.shape)}, {len(names)} and {len(fractions)}.",
        )
    shares = _shares(counts, fractions)
    figure = new_figure(5.6 + _names_width(names), 1.3 + _ROW_HEIGHT * len(names), "What enters every layer.")
    axes = figure.subplots()
    left = np.zeros(len(names))
    for name, share in shares.items():
        style = {"color": INK, "alpha": 0.12} if name == "0" else {"color": _VALUE_COLOURS.get(name, _FRACTION_COLOUR)}
        if share.any():
            axes.barh(range(len(names)), share, 0.78, left, label=name, **style)
        left += share
    _write_shares(axes, np.sum([share for name, share in shares.items() if name != "0"], axis=0))
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("values that enter a layer; at the right, those that are not 0")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside upper right", ncols=len(shares), handlelength=1.0, columnspacing=1.2)
    return figure


def _shares(counts: np.ndarray, fractions: np.ndarray) -> dict[str, np.ndarray]:
    """By what the legend calls them, zeros last."""
    grouped = {"1": counts[:, 1], "2": counts[:, 2:3].sum(1), "3": counts[:, 3:4].sum(1)}
    grouped |= {"4 and above": counts[:, 4:].sum(1), "not an integer": fractions, "0": counts[:, 0]}
    totals = np.maximum(counts.sum(1) + fractions, 1)
    return {name: values / totals for name, values in grouped.items()}


def _write_shares(axes: Axes, shares: np.ndarray) -> None:
    for layer, share in enumerate(shares):
        axes.text(1.01, layer, f"{share:.1%}", va="center", fontsize=8, transform=axes.get_yaxis_transform())


def _names_width(names: Sequence[str]) -> float:
    return 0.085 * max(len(shortened(name)) for name in names)


@house_style()
def raster_figure(spikes: np.ndarray, title: str = "") -> Figure:
    """Spikes [T, neurons]: a row for each neuron, a mark for each spike; above, how many fire at each step."""
    from matplotlib.ticker import MaxNLocator

    if spikes.ndim != 2 or spikes.size == 0:
        raise FieldError("spikes", f"A raster's spikes are [steps, neurons], got {list(spikes.shape)}.")
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
    membrane: np.ndarray, spikes: np.ndarray, v_threshold: float, names: Sequence[str] = (), v_reset: float | None = 0.0
) -> Figure:
    """The membrane H before each spike and the spikes, both [T, neurons]: a trace each, which falls where it fires:
    to `v_reset`, or by the threshold where that is None.
    """
    if membrane.ndim != 2 or membrane.size == 0 or spikes.shape != membrane.shape:
        raise FieldError(
            "membrane",
            f"Membrane and spikes are both [steps, neurons], got {list(membrane.shape)} and {list(spikes.shape)}.",
        )
    num_steps, num_neurons = membrane.shape
    names = names or [f"neuron {number}" for number in range(1, num_neurons + 1)]
    if len(names) != num_neurons:
        raise FieldError("names", f"{num_neurons} traces need as many names, got {len(names)}.")
    width = float(np.clip(3 + 0.3 * num_steps, 5, 12))
    figure = new_figure(
        width, 1.0 + 0.9 * num_neurons, "Membranes of single neurons, their threshold and their spikes."
    )
    rows = figure.subplots(num_neurons, 1, sharex=True, squeeze=False)[:, 0]
    for axes, name, trace, fired in zip(rows, names, membrane.T, spikes.T.astype(bool), strict=True):
        times, voltages = _trace(trace, fired, v_threshold, v_reset)
        axes.axhline(v_threshold, color=COLOURS[1], linewidth=1, linestyle="--", label="threshold")
        axes.plot(times, voltages, color=COLOURS[0], linewidth=1.5, label="membrane")
        axes.plot(np.flatnonzero(fired) + 1, trace[fired], "o", color=COLOURS[1], markersize=5, label="spike")
        axes.set_title(shortened(name), fontsize=9)
        axes.margins(y=0.15)
    _count_from_one(rows[-1], num_steps)
    rows[-1].set_xlim(0, num_steps + 0.5)
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    return figure


def _trace(
    membrane: np.ndarray, fired: np.ndarray, v_threshold: float, v_reset: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """From rest through every H, down to the voltage after a spike at once where the neuron fired."""
    after = membrane - v_threshold if v_reset is None else v_reset
    steps = np.arange(1, len(membrane) + 1)
    times = np.concatenate([[0], steps.repeat(2)])
    voltages = np.stack([membrane, np.where(fired, after, membrane)], -1)
    return times, np.concatenate([[v_reset or 0.0], voltages.ravel()])


def _count_from_one(axes: Axes, num_steps: int) -> None:
    axes.set_xlabel("step")
    axes.set_xlim(0.4, num_steps + 0.6)
    if num_steps <= 20:
        axes.set_xticks(range(1, num_steps + 1))


def events_and_spikes_figure(frames: np.ndarray, spikes: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Counts of events [T, 2, H, W] above spikes [T, H', W'] by layer, summed over channels; a column for each step.

    Full light is the same for all steps of a row, so that they can be compared.
    """
    _check_events_and_spikes(frames, spikes)
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


def _check_events_and_spikes(frames: np.ndarray, spikes: Mapping[str, np.ndarray]) -> None:
    if frames.ndim != 4 or frames.shape[1] != 2 or frames.size == 0:
        raise FieldError("frames", f"Frames of events are [T, 2, H, W], got {list(frames.shape)}.")
    if not spikes:
        raise FieldError("spikes", "There are no spikes to draw beside the events; give those of at least one layer.")
    for name, counts in spikes.items():
        if counts.ndim != 3 or len(counts) != len(frames) or counts.size == 0:
            raise FieldError(
                "spikes",
                f"The spikes of {name} should be [T, H, W] with the T = {len(frames)} of the frames, "
                f"got {list(counts.shape)}.",
            )
        if not (counts >= 0).all():
            raise FieldError("spikes", f"The spikes of {name} are counts, got negative numbers or NaN.")
