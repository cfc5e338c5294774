"""Firing rates: bars, shades and shares that say what was measured."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from tests.mistakes import field_error

from spikformer.visualise.firing import firing_figure, input_histogram_figure, layer_rates_figure
from spikformer.visualise.style import COLOURS, save_figure


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def bars(figure: Figure) -> dict[str, list[tuple[float, float]]]:
    """Left and right end of each bar, by what the legend calls them."""
    return {
        str(container.get_label()): [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in container]
        for container in figure.axes[0].containers
    }


def test_each_block_has_a_bar_of_q_k_and_v_side_by_side() -> None:
    rates = {"Q": [0.1, 0.2], "K": [0.3, 0.4], "V": [0.05, 0.15]}
    figure = firing_figure({block + 1: {name: rates[name][block] for name in rates} for block in range(2)})
    axes = figure.axes[0]
    assert legend(figure) == ["Q", "K", "V"]
    places = []
    for container, (name, values), colour in zip(axes.containers, rates.items(), COLOURS, strict=False):
        assert container.get_label() == name
        assert [bar.get_height() for bar in container] == values
        assert {to_hex(bar.get_facecolor()) for bar in container} == {colour.lower()}
        places += [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in container]
    places.sort()
    assert all(right <= left for (_, right), (left, _) in pairwise(places)), "none over another"
    assert [round((places[at][0] + places[at + 2][1]) / 2, 9) for at in (0, 3)] == [0, 1], "centred on their block"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2"]
    assert axes.get_ylim()[0] == 0


def test_blocks_keep_their_numbers_and_may_lack_v() -> None:
    figure = firing_figure({3: {"Q": 0.1, "K": 0.2}, 5: {"Q": 0.3, "K": 0.4, "V": 0.5}})
    axes = figure.axes[0]
    heights = {container.get_label(): [bar.get_height() for bar in container] for container in axes.containers}
    assert heights == {"Q": [0.1, 0.3], "K": [0.2, 0.4], "V": [0.5]}
    assert [text.get_text() for text in axes.get_xticklabels()] == ["3", "5"]
    assert round(bars(figure)["V"][0][0]) == 1, "above the second block"


def test_a_silent_network_can_be_drawn() -> None:
    assert firing_figure({1: {"Q": 0.0, "K": 0.0, "V": 0.0}}).axes[0].get_ylim() == (0, 1)
    assert words(layer_rates_figure(["a"], np.zeros((1, 2)))) == ["0.0", "0.0"]
    assert words(input_histogram_figure(["a", "b"], np.array([[9, 0], [0, 0]]))) == ["0.0%", "0.0%"]


def test_layers_and_steps_are_shaded_and_numbered() -> None:
    rates = np.array([[0.1, 0.2, 0.05], [0.0, 0.4, 0.123]])
    figure = layer_rates_figure(["stem", "block"], rates)
    axes = figure.axes[0]
    (image,) = axes.get_images()
    assert np.array_equal(image.get_array(), rates)
    assert image.get_clim() == (0, 0.4)
    assert words(figure) == ["10.0", "20.0", "5.0", "0.0", "40.0", "12.3"]
    assert [text.get_position() for text in axes.texts] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    inks = {text.get_text(): text.get_color() for text in axes.texts}
    assert (inks["40.0"], inks["0.0"]) == ("#ffffff", "#101010"), "light on dark, dark on light"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["stem", "block"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "3"]


def test_many_steps_have_no_numbers_and_few_ticks() -> None:
    figure = layer_rates_figure(["a"], np.full((1, 100), 0.5))
    assert words(figure) == []
    labels = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert labels == [str(step) for step in range(1, 101, 5)]
    assert len(words(layer_rates_figure(["a"], np.full((1, 20), 0.5)))) == 20


def test_inputs_are_stacked_to_all_of_them() -> None:
    counts = np.zeros((2, 17))
    counts[0, [0, 1, 2]] = [70, 20, 10]
    counts[1, [0, 1, 2, 3, 4, 16]] = [5, 1, 1, 1, 1, 1]
    figure = input_histogram_figure(["conv", "fc1"], counts)
    found = bars(figure)
    assert list(found) == legend(figure) == ["1", "2", "3", "4 and above", "0"]
    first, second = ([found[name][layer] for name in found] for layer in (0, 1))
    assert np.ravel(first) == pytest.approx([0, 0.2, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 1])
    assert np.ravel(second) == pytest.approx([0, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.5, 0.5, 1])
    assert words(figure) == ["30.0%", "50.0%"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["conv", "fc1"]
    assert figure.axes[0].get_ylim() == (1.5, -0.5), "the first layer is above"


def test_what_is_not_an_integer_has_its_share() -> None:
    counts = np.array([[25, 0, 0], [50, 50, 0]])
    figure = input_histogram_figure(["first", "second"], counts, [75, 0])
    assert legend(figure) == ["1", "not an integer", "0"]
    assert bars(figure)["not an integer"][0] == (0, 0.75)
    assert words(figure) == ["75.0%", "50.0%"]


def test_bars_of_one_kind_have_a_colour_of_their_own(tmp_path: Path) -> None:
    figure = input_histogram_figure(["a"], np.ones((1, 17)), [1])
    colours = [to_hex(container[0].get_facecolor(), keep_alpha=True) for container in figure.axes[0].containers]
    assert len(set(colours)) == len(colours) == 6
    save_figure(figure, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 1000


def test_wrong_use() -> None:
    for rates in ({}, {1: {}, 2: {}}):
        with field_error("rates"):
            firing_figure(rates)
    for names, shape in ((["a"], (2, 3)), (["a"], (1,)), ([], (0, 3))):
        with field_error("rates", list(shape), len(names)):
            layer_rates_figure(names, np.zeros(shape))
    for names, shape, fractions in (
        (["a"], (2, 5), None),
        (["a"], (1, 1), None),
        (["a"], (1, 5), [1, 2]),
        ([], (0, 5), None),
    ):
        with field_error("counts", list(shape), len(names)):
            input_histogram_figure(names, np.zeros(shape), fractions)
