"""Surrogates: a smooth step whose slope is the gradient that training uses."""

from typing import get_args

import numpy as np
import pytest
import torch

from spikformer.neurons import spike, surrogate_gradient
from spikformer.visualise.surrogates import stand_in, surrogate_figure
from spikformer.vocabulary import Surrogate


@pytest.mark.parametrize("surrogate", get_args(Surrogate))
@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_the_gradient_is_the_slope_of_the_stand_in(surrogate: Surrogate, alpha: float) -> None:
    x = torch.linspace(-3, 3, 41, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(stand_in(surrogate, x, alpha).sum(), x)
    torch.testing.assert_close(slope, surrogate_gradient(surrogate, x, alpha).detach())


@pytest.mark.parametrize("surrogate", get_args(Surrogate))
def test_the_stand_in_is_a_step_from_0_to_1(surrogate: Surrogate) -> None:
    x = torch.tensor([-1e9, 0.0, 1e9], dtype=torch.float64)
    torch.testing.assert_close(stand_in(surrogate, x, 4.0), torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))


def test_both_panels_show_what_neurons_use() -> None:
    figure = surrogate_figure({"sigmoid": 4.0, "arctan": 2.0})
    steps, gradients = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Θ", "sigmoid, α = 4", "arctan, α = 2"]
    theta, *smooth = steps.get_lines()
    x = torch.as_tensor(np.asarray(theta.get_xdata()))
    assert np.array_equal(theta.get_ydata(), spike(x).numpy())
    names: list[tuple[Surrogate, float]] = [("sigmoid", 4.0), ("arctan", 2.0)]
    for (name, alpha), line, gradient in zip(names, smooth, gradients.get_lines(), strict=True):
        assert np.array_equal(line.get_ydata(), stand_in(name, x, alpha))
        assert np.array_equal(gradient.get_ydata(), surrogate_gradient(name, x, alpha))
        assert line.get_color() == gradient.get_color()
    assert x.min() == -x.max() == -4, "wide enough for the flattest of them"
    assert len({line.get_color() for line in steps.get_lines()}) == 3


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="There is no surrogate to draw; give at least one with its α"):
        surrogate_figure({})
    with pytest.raises(ValueError, match="alpha must be above 0, got 0"):
        surrogate_figure({"sigmoid": 0})
    with pytest.raises(ValueError, match="step"):
        surrogate_figure({"step": 1.0})
