"""Surrogates: what stands in for the step Θ when gradients are computed (paper, appendix D.3, figure (a))."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spikformer.neurons.functional import Dynamics, surrogate_gradient
from spikformer.visualise.figures import COLOURS, INK, house_style, new_figure
from spikformer.vocabulary import Surrogate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def stand_in(surrogate: Surrogate, x: Tensor, alpha: float) -> Tensor:
    """The smooth step from 0 to 1 whose slope is `surrogate_gradient`."""
    match surrogate:
        case "sigmoid":
            return torch.sigmoid(alpha * x)
        case "arctan":
            return torch.atan(math.pi / 2 * alpha * x) / math.pi + 0.5


@house_style()
def surrogate_figure(alpha_by_name: Mapping[Surrogate, float]) -> Figure:
    """Each smooth step beside its gradient, over the membrane's distance from the threshold."""
    if not alpha_by_name:
        raise ValueError("There is no surrogate to draw; give at least one with its α.")
    for name, alpha in alpha_by_name.items():
        Dynamics(surrogate=name, alpha=alpha)  # refuses what no neuron could have
    figure = new_figure(8.4, 3.4, "Surrogates of the spike's step, and their gradients.")
    steps, gradients = figure.subplots(1, 2)
    reach = 8 / min(alpha_by_name.values())
    x = torch.linspace(-reach, reach, 801, dtype=torch.float64)
    steps.plot(x, x >= 0, color=INK, linewidth=1, label="Θ")
    for index, (name, alpha) in enumerate(alpha_by_name.items()):
        style = {"color": COLOURS[index % len(COLOURS)], "linewidth": 2, "linestyle": ("-", "--")[index % 2]}
        steps.plot(x, stand_in(name, x, alpha), label=f"{name}, α = {alpha:g}", **style)
        gradients.plot(x, surrogate_gradient(name, x, alpha), **style)
    for axes, title in ((steps, "spike"), (gradients, "gradient")):
        axes.set_title(title)
        axes.set_xlabel("H − V_th")
        axes.set_xlim(-reach, reach)
        axes.grid()
    gradients.set_ylim(0, None)
    figure.legend(loc="outside lower center", ncols=len(alpha_by_name) + 1)
    return figure
