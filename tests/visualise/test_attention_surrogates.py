"""Surrogates drawn as neurons use them, and products within reach of their gradients."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.mistakes import field_error

from spikformer.config import Surrogate
from spikformer.neurons import spike, surrogate_gradient
from spikformer.neurons.functional import smooth_step
from spikformer.visualise.attention import (
    _edges,
    _ticks,
    gradient_reach,
    products_figure,
    share_in_reach,
    surrogate_figure,
)


def test_both_panels_show_what_neurons_use() -> None:
    figure = surrogate_figure({"sigmoid": 4.0, "arctan": 2.0})
    steps, gradients = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Θ", "sigmoid, α = 4", "arctan, α = 2"]
    theta, *smooth = steps.get_lines()
    x = torch.as_tensor(np.asarray(theta.get_xdata()))
    assert np.array_equal(theta.get_ydata(), spike(x).numpy())
    names: list[tuple[Surrogate, float]] = [("sigmoid", 4.0), ("arctan", 2.0)]
    for (name, alpha), line, gradient in zip(names, smooth, gradients.get_lines(), strict=True):
        assert np.array_equal(line.get_ydata(), smooth_step(name, x, alpha))
        assert np.array_equal(gradient.get_ydata(), surrogate_gradient(name, x, alpha))
        assert line.get_color() == gradient.get_color()
    assert x.min() == -x.max() == -4, "wide enough for the flattest of them"
    assert len({line.get_color() for line in steps.get_lines()}) == 3


def test_only_surrogates_that_a_neuron_can_have_are_drawn() -> None:
    with field_error("alpha_by_name"):
        surrogate_figure({})
    with field_error("alpha", 0):
        surrogate_figure({"sigmoid": 0})
    with field_error("surrogate", "'step'"):
        surrogate_figure({"step": 1.0})


def test_the_reach_is_where_a_hundredth_of_the_gradient_is_left() -> None:
    # Sigmoid: 4 σ (1 − σ) = 0.01. Arctan: 1 + (π/2 · αx)² = 100.
    assert gradient_reach("sigmoid", 4.0) == pytest.approx(2 * math.acosh(10) / 4, rel=1e-9)
    assert gradient_reach("arctan", 2.0) == pytest.approx(math.sqrt(99) / math.pi, rel=1e-9)
    assert gradient_reach("sigmoid", 0.01) == pytest.approx(400 * gradient_reach("sigmoid", 4.0), rel=1e-9)


def test_the_share_counts_both_sides_of_the_threshold() -> None:
    reach = gradient_reach("sigmoid", 4.0)  # 1.4966
    values = np.array([0.5, 0.5 + 0.99 * reach, 0.5 - 0.99 * reach, 0.5 + 1.01 * reach, 0.5 - 1.01 * reach])
    assert share_in_reach(values, 0.5, "sigmoid", 4.0) == pytest.approx(3 / 5)
    assert share_in_reach(values.reshape(5, 1), 2.5, "sigmoid", 4.0) == pytest.approx(2 / 5)


def test_each_variant_has_a_row_with_its_share_over_the_same_band() -> None:
    values = {"ssa": np.array([0.0, 0.125, 1.0, 1.5]), "identity": np.array([-900.0, 0.0, 40.0, 10_000.0])}
    figure = products_figure(values, 0.5, "sigmoid", 4.0)
    titles = [(axes.get_title("left"), axes.get_title("right")) for axes in figure.axes]
    assert titles == [("ssa", "100.0% with a gradient"), ("identity", "25.0% with a gradient")]
    reach = gradient_reach("sigmoid", 4.0)
    for axes in figure.axes:
        band = axes.patches[0].get_extents().transformed(axes.transData.inverted())
        assert (band.x0, band.x1) == pytest.approx((0.5 - reach, 0.5 + reach))
        left, right = axes.get_xlim()
        assert left < -900
        assert right > 10_000
    assert "sigmoid's gradient is above 1%" in figure.axes[-1].get_xlabel()


def test_a_bar_is_as_high_as_the_share_it_holds_where_the_axis_is_linear() -> None:
    figure = products_figure({"ssa": np.array([0.0, 0.0, 0.0, 0.125])}, 0.5, "sigmoid", 4.0)
    heights, edges, _ = figure.axes[0].patches[1].get_data()
    filled = {(edges[at], edges[at + 1]): height for at, height in enumerate(heights) if height}
    assert list(filled) == [(-0.0625, 0.0625), (0.0625, 0.1875)]
    assert list(filled.values()) == pytest.approx([0.75, 0.25], rel=0.03)


def test_density_is_by_width_on_the_axis() -> None:
    """Values spread evenly on the axis make a level, in the linear middle and far out alike."""
    values = np.sinh(np.linspace(-12, 12, 480_001))
    figure = products_figure({"even": values}, 0.5, "sigmoid", 4.0)
    heights = figure.axes[0].patches[1].get_data()[0][2:-2]
    assert heights.max() / heights.min() < 1.01


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_bins_hold_every_value_and_no_multiple_of_an_eighth_lies_on_an_edge(one: float, other: float) -> None:
    edges = _edges(min(one, other), max(one, other))
    assert edges[0] <= min(one, other)
    assert edges[-1] >= max(one, other)
    assert (np.diff(edges) > 0).all()
    assert np.array_equal(edges * 8 % 1, np.full(len(edges), 0.5))


def test_ticks_are_zero_and_powers_of_ten() -> None:
    assert _ticks(np.array([-1.5, 15.0])) == ([-1, 0, 1, 10], ["−1", "0", "1", "10"])
    places, names = _ticks(np.array([-2e3, 3e4]))
    assert dict(zip(places, names, strict=True)) == {-1: "−1", -100: "−10²", 0: "0", 1: "1", 100: "10²", 1e4: "10⁴"}
    assert len(_ticks(np.array([-1e12, 1e12]))[0]) <= 11


def test_values_all_alike_can_be_drawn() -> None:
    figure = products_figure({"silent": np.zeros((2, 3), np.float32)}, 0.5, "arctan", 2.0)
    assert figure.axes[0].get_title("right") == "100.0% with a gradient"
    assert figure.axes[0].get_xlim()[1] > 0.5 + gradient_reach("arctan", 2.0), "the band is whole"


def test_products_are_finite_and_there_is_one() -> None:
    with field_error("values"):
        products_figure({}, 0.5, "sigmoid", 4.0)
    with field_error("values", "relu"):
        products_figure({"ssa": np.ones(3), "relu": np.ones(0)}, 0.5, "sigmoid", 4.0)
    with field_error("values", "relu", 2, 3):
        products_figure({"relu": np.array([1, np.nan, np.inf])}, 0.5, "sigmoid", 4.0)
    with field_error("alpha", -1):
        products_figure({"relu": np.ones(3)}, 0.5, "sigmoid", -1)
