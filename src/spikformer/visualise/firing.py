"""How often neurons fire, and what that makes of the inputs of every layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spikformer.visualise.style import COLOURS, INK, SEQUENTIAL, house_style, new_figure, readable_on, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUMBERED_STEPS = 20  # beyond, numbers would not fit their cells
_ROW_HEIGHT = 0.26
# How values are told apart: spikes in blue, larger ones warmer and warmer, zeros as little as can be seen.
_VALUE_COLOURS = {"1": "#0072B2", "2": "#E69F00", "3": "#D55E00", "4 and above": "#CC79A7"}
_FRACTION_COLOUR = "#009E73"


@house_style()
def firing_figure(rates: Mapping[str, Sequence[float]]) -> Figure:
    """Rates by block of each of "Q", "K" and "V", as grouped bars (paper, appendix D.1)."""
    from matplotlib.ticker import PercentFormatter

    lengths = {len(values) for values in rates.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"Each of Q, K and V needs a rate for every block, got {_counts(rates)}.")
    (num_blocks,) = lengths
    figure = new_figure(max(4.0, 1.6 + 0.7 * num_blocks), 3.4, "Firing rates of query, key and value by block.")
    axes = figure.subplots()
    width = 0.8 / len(rates)
    for index, (name, values) in enumerate(rates.items()):
        places = np.arange(num_blocks) + (index - (len(rates) - 1) / 2) * width
        axes.bar(places, values, 0.9 * width, color=COLOURS[index % len(COLOURS)], label=name)
    axes.set_xticks(range(num_blocks), [str(block) for block in range(1, num_blocks + 1)])
    axes.set_xlabel("block")
    axes.set_ylabel("neurons that fire at a step")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.set_ylim(0, None if any(map(any, rates.values())) else 1)
    figure.legend(loc="outside upper right", ncols=len(rates))
    return figure


@house_style()
def layer_rates_figure(names: Sequence[str], rates: np.ndarray) -> Figure:
    """Rates [layers, T] as a map: a row for each layer, a column for each step."""
    from matplotlib import colormaps
    from matplotlib.ticker import PercentFormatter

    if rates.ndim != 2 or len(names) != len(rates) or rates.size == 0:
        raise ValueError(
            f"Rates are [layers, steps] with a name for each layer, got {list(rates.shape)}, {len(names)}."
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
        raise ValueError(
            "Counts are [layers, values 0, 1, …], with a name and a number of fractions for each layer, "
            f"got {list(counts.shape)}, {len(names)} and {len(fractions)}."
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


def _counts(rates: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{len(values)} for {name}" for name, values in rates.items()) or "none"
