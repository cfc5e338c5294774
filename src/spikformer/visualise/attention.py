"""What attention looks at, and what it can learn from: maps over an image, and surrogates' reach (paper, appendix D.3).

A surrogate stands in for the step Θ of a spike when gradients are computed. Outside the band where it has a gradient,
the neuron after attention passes nothing back: Q Kᵀ V · s against that band shows why some kinds of attention do not
learn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from spikformer.config import Surrogate
from spikformer.errors import FieldError
from spikformer.neurons.functional import Dynamics, smooth_step, surrogate_gradient
from spikformer.visualise.mosaic import enlarged, fitted, mosaic, tile_side
from spikformer.visualise.style import COLOURS, INK, house_style, new_figure, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shown = Literal["attention", "mask", "masked Q", "masked K", "masked V"]

# Black paper that is attended to must not look like paper that is not.
_LIFT = 0.3
_VANISHED = 0.01  # of the largest gradient
_STEP = 1 / 8  # the paper's s, of which products of spikes are multiples
_BIN = 1 / 8  # width on an axis that is linear around 0 and logarithmic far from it
_DENSITIES = (1, 1e-2, 1e-4)
_LOWEST = 1e-6
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class BlockMaps:
    """What one block attends to, at each step."""

    block: int
    """Its number, counted from 1."""
    shown: Shown
    """How much each token is looked at by Q Kᵀ; its spike in a mask; the share of its spikes in Q that pass a mask."""
    grids: np.ndarray
    """[T, n_h, n_w], none negative; stages of a network have grids of their own."""

    @property
    def title(self) -> str:
        return f"block {self.block}" if self.shown == "attention" else f"block {self.block}, {self.shown}"


@house_style()
def attention_figure(
    picture: np.ndarray,
    maps: Sequence[np.ndarray] | np.ndarray,
    row_titles: Sequence[str],
    column_titles: Sequence[str],
    title: str = "",
) -> Figure:
    """Rows of maps after the picture itself: uint8 [H, W, RGB], and [columns, n_h, n_w] a row, none negative.

    Each map is as bright as its own largest value allows; a map without any is black and says "silent".
    """
    _check_maps(picture, maps)
    shown = fitted(picture, tile_side(*picture.shape[:2]))
    tiles = [[shown, *(attended(shown, grid) for grid in row)] for row in maps]
    silent = [(row, column) for row, grids in enumerate(maps) for column, grid in enumerate(grids) if not grid.any()]
    figure, axes = mosaic(
        tiles,
        row_titles,
        ["image", *column_titles],
        title,
        f"Attention over an image, {len(maps)} by {len(maps[0])} maps: bright where tokens are attended to.",
    )
    for row, column in silent:
        axes.text(column + 1, row, "silent", ha="center", va="center", color="#9aa0a6", fontsize=8)
    return figure


def attended(picture: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The picture uint8 [H, W, RGB] as one map [n_h, n_w] lights it: by blocks, exactly black where attention is 0.

    Light grows with the root of attention, so that a little of it is still seen.
    """
    strength = np.sqrt(grid / (grid.max() or 1))
    light = enlarged(strength, *picture.shape[:2])[..., None]
    return np.round(light * (255 * _LIFT + (1 - _LIFT) * picture)).astype(np.uint8)


def to_grid(tokens: np.ndarray, height: int, width: int) -> np.ndarray:
    """Tokens [T, N] where they lie on an image of this size, [T, n_h, n_w]: square patches, row by row."""
    side = math.isqrt(height * width // tokens.shape[-1])
    if side == 0 or height % side or width % side or height * width != tokens.shape[-1] * side**2:
        raise FieldError(
            "tokens", f"Tokens are square patches of an image of {height}×{width}, got {tokens.shape[-1]} of them."
        )
    return tokens.reshape(-1, height // side, width // side)


def _check_maps(picture: np.ndarray, maps: Sequence[np.ndarray] | np.ndarray) -> None:
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or picture.size == 0:
        raise FieldError("picture", f"The picture is uint8 [H, W, 3], got {picture.dtype} {list(picture.shape)}.")
    if len(maps) == 0 or any(row.ndim != 3 or row.size == 0 or len(row) != len(maps[0]) for row in maps):
        shapes = ", ".join(str(list(row.shape)) for row in maps) or "no row"
        raise FieldError(
            "maps", f"Each row of maps is [columns, n_h, n_w], with as many columns as others; got {shapes}."
        )
    lowest, largest = min(row.min() for row in maps), max(row.max() for row in maps)
    if not (lowest >= 0 and largest < np.inf):
        raise FieldError(
            "maps",
            "Maps are finite and not negative; "
            f"these go from {lowest:g} to {largest:g}. Take the absolute value of a map with a sign.",
        )


@house_style()
def surrogate_figure(alpha_by_name: Mapping[Surrogate, float]) -> Figure:
    """Each smooth step beside its gradient, over the membrane's distance from the threshold."""
    if not alpha_by_name:
        raise FieldError("alpha_by_name", "There is no surrogate to draw; give at least one with its α.")
    for name, alpha in alpha_by_name.items():
        Dynamics(surrogate=name, alpha=alpha)  # raises for what no neuron could have
    figure = new_figure(8.4, 3.4, "Surrogates of the spike's step, and their gradients.")
    steps, gradients = figure.subplots(1, 2)
    reach = 8 / min(alpha_by_name.values())
    x = torch.linspace(-reach, reach, 801, dtype=torch.float64)
    steps.plot(x, x >= 0, color=INK, linewidth=1, label="Θ")
    for index, (name, alpha) in enumerate(alpha_by_name.items()):
        style = {"color": COLOURS[index % len(COLOURS)], "linewidth": 2, "linestyle": ("-", "--")[index % 2]}
        steps.plot(x, smooth_step(name, x, alpha), label=f"{name}, α = {alpha:g}", **style)
        gradients.plot(x, surrogate_gradient(name, x, alpha), **style)
    for axes, title in ((steps, "spike"), (gradients, "gradient")):
        axes.set_title(title)
        axes.set_xlabel("H − V_th")
        axes.set_xlim(-reach, reach)
        axes.grid()
    gradients.set_ylim(0, None)
    figure.legend(loc="outside lower center", ncols=len(alpha_by_name) + 1)
    return figure


def gradient_reach(surrogate: Surrogate, alpha: float) -> float:
    """How far from the threshold the gradient is still a hundredth of its largest."""
    Dynamics(surrogate=surrogate, alpha=alpha)  # raises for what no neuron could have

    def remains(distance: float) -> bool:
        gradient = surrogate_gradient(surrogate, torch.tensor([0.0, distance], dtype=torch.float64), alpha)
        return bool(gradient[1] >= _VANISHED * gradient[0])

    near, far = 0.0, 1.0
    while remains(far):
        near, far = far, 2 * far
    while (middle := (near + far) / 2) not in (near, far):
        near, far = (middle, far) if remains(middle) else (near, middle)
    return near


def share_in_reach(values: np.ndarray, v_threshold: float, surrogate: Surrogate, alpha: float) -> float:
    """Of the values, how many lie where the surrogate has a gradient."""
    return float(np.mean(abs(values.astype(np.float64) - v_threshold) <= gradient_reach(surrogate, alpha)))


@house_style()
def products_figure(values: Mapping[str, np.ndarray], v_threshold: float, surrogate: Surrogate, alpha: float) -> Figure:
    """Samples of Q Kᵀ V · s, or of what a mask fires from, by variant, as histograms over the band that still learns.

    Paper: a value stands for the membrane itself, as if the neuron had no leak and no past.
    """
    from matplotlib.ticker import NullLocator

    _check_products(values)
    reach = gradient_reach(surrogate, alpha)
    shown = [v_threshold - reach, v_threshold + reach]
    shown += [float(end) for samples in values.values() for end in (samples.min(), samples.max())]
    edges = _edges(min(shown), max(shown))
    figure = new_figure(8, 1.1 + 1.05 * len(values), "Currents after attention, such as Q Kᵀ V · s, by variant.")
    rows = figure.subplots(len(values), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (name, samples) in zip(rows, values.items(), strict=True):
        axes.axvspan(v_threshold - reach, v_threshold + reach, color=COLOURS[2], alpha=0.18, linewidth=0)
        axes.axvline(v_threshold, color=COLOURS[2], linewidth=1)
        density = np.histogram(samples, edges)[0] / samples.size / (np.diff(np.arcsinh(edges)) / _BIN)
        axes.stairs(density, edges, fill=True, color=COLOURS[0])
        axes.set_title(shortened(name))
        share = share_in_reach(samples, v_threshold, surrogate, alpha)
        axes.set_title(f"{share:.1%} with a gradient", loc="right", fontsize=9)
        axes.set_yscale("log")
        axes.set_yticks(_DENSITIES, [f"{density:g}" for density in _DENSITIES])
        axes.yaxis.set_minor_locator(NullLocator())
    rows[0].set_ylim(_LOWEST, 2)
    rows[0].set_xscale("asinh")
    rows[0].set_xticks(*_ticks(edges))
    rows[0].xaxis.set_minor_locator(NullLocator())
    rows[0].set_xlim(edges[0], edges[-1])
    shaded = f"shaded, where the {surrogate}'s gradient is above {_VANISHED:.0%} of its largest"
    rows[-1].set_xlabel(f"current of the neuron after attention, such as Q Kᵀ V · s\n{shaded}")
    figure.supylabel("density", fontsize=10)
    return figure


def _edges(lowest: float, largest: float) -> np.ndarray:
    """Bins of about even width on the axis, none of which cuts a multiple of 1/8 in two."""
    first, last = np.arcsinh([lowest, largest]) / _BIN
    places = np.sinh(_BIN * np.arange(np.floor(first) - 0.5, np.ceil(last) + 1))
    return np.unique((np.round(places / _STEP - 0.5) + 0.5) * _STEP)


def _ticks(edges: np.ndarray) -> tuple[list[float], list[str]]:
    """Zero, and powers of ten to either side as far as there are bins, not more than can be read."""
    decades = int(np.log10(max(-edges[0], edges[-1])))
    exponents = range(0, decades + 1, 1 + decades // 4)
    names = {10.0**exponent: _power_of_ten(exponent) for exponent in exponents}
    signed = {-value: f"−{name}" for value, name in names.items()} | {0.0: "0"} | names
    shown = {value: name for value, name in signed.items() if edges[0] <= value <= edges[-1]}
    return list(shown), list(shown.values())


def _power_of_ten(exponent: int) -> str:
    return ("1", "10")[exponent] if exponent < 2 else f"10{str(exponent).translate(_RAISED)}"


def _check_products(values: Mapping[str, np.ndarray]) -> None:
    if not values:
        raise FieldError("values", "There are no products to draw; give samples of at least one attention variant.")
    for name, samples in values.items():
        if samples.size == 0 or not np.isfinite(samples).all():
            raise FieldError(
                "values", f"The products of {name} should be finite numbers, one at least; got {_wrong(samples)}."
            )


def _wrong(samples: np.ndarray) -> str:
    return f"{np.sum(~np.isfinite(samples))} of {samples.size} that are not" if samples.size else "none"
