"""Accuracy against cost: a point for each variant that has both, none that is made up."""

from matplotlib.figure import Figure
from tests.mistakes import field_error

from spikformer.analysis.ablation import CellResult, Line, summarise, variants
from spikformer.presets import get_preset
from spikformer.visualise.costs import cost_figure

DIGITS = get_preset("spikformer_tiny_digits").config


def cell(name: str, seed: int, **figures: float) -> CellResult:
    return CellResult(name, seed, "finished", figures)


def lines(*cells: CellResult) -> list[Line]:
    return [line for line in summarise(variants("architecture", DIGITS, "digits"), cells) if line.cells]


def points(figure: Figure) -> list[list[tuple[float, float]]]:
    """By panel."""
    found = ([line.get_xydata()[0] for line in axes.lines if line.get_marker() != "|"] for axes in figure.axes)
    return [[(round(float(x), 6), round(float(y), 6)) for x, y in panel] for panel in found]


def test_each_variant_stands_at_its_cost_in_the_unit_that_fits() -> None:
    some = lines(
        cell("spikformer", 0, accuracy=0.9, energy_mj=0.002, engine_ms=0.3),
        cell("spikformer", 1, accuracy=0.8, energy_mj=0.004, engine_ms=0.5),
        cell("maxformer", 0, accuracy=0.7, energy_mj=0.001, engine_ms=0.6),
    )
    figure = cost_figure(some, "accuracy", title="title", label="right, %")
    assert points(figure) == [[(3, 85), (1, 70)], [(0.4, 85), (0.6, 70)]]
    assert [axes.get_xlim()[0] for axes in figure.axes] == [0, 0]
    assert "µJ" in figure.axes[0].get_xlabel()
    large = lines(cell("spikformer", 0, accuracy=0.9, energy_mj=7.7))
    assert points(cost_figure(large, "accuracy")) == [[(7.7, 90)], []]


def test_what_lacks_a_point_is_marked() -> None:
    some = lines(
        cell("spikformer", 0, accuracy=0.9, energy_mj=0.002, engine_ms=0.3),
        cell("max_resnet", 0, accuracy=0.8, energy_mj=0.004),
        CellResult("qkformer", 0, "diverged"),
    )
    figure = cost_figure(some, "accuracy")
    assert [len(panel) for panel in points(figure)] == [2, 1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["spikformer", "qkformer –", "max_resnet –"]


def test_nothing_is_an_error() -> None:
    with field_error("lines"):
        cost_figure([], "accuracy")
