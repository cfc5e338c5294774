"""Accuracy against what it costs: the curve, the measured points, the chosen one and all steps."""

from dataclasses import replace

from matplotlib.figure import Figure

from spikformer.analysis.anytime import AnytimeReport, ExitPoint, MeasuredExit
from spikformer.visualise.anytime import anytime_figure


def measured(confidence: float | None, accuracy: float, steps: float, energy_mj: float = 0.001) -> MeasuredExit:
    point = ExitPoint(confidence, accuracy, steps, (0.5, 0.25, 0.25))
    return MeasuredExit(point, 2 * steps, steps, energy_mj * steps, 4 * energy_mj * steps)


EXITS = (measured(0.5, 0.7, 1.0), measured(0.9, 0.8, 1.5))
REPORT = AnytimeReport(
    confidence=0.9,
    tolerance=0.002,
    validation=EXITS[1].point,
    validation_all=measured(None, 0.81, 3.0).point,
    curve=tuple(each.point for each in EXITS),
    exits=EXITS,
    all_steps=measured(None, 0.81, 3.0),
    num_samples=8,
    batch_size=32,
    num_threads=1,
    instructions="scalar",
    machine="some processor",
    silent=False,
)


def marks(figure: Figure, panel: int, marker: str, *, filled: bool) -> list[tuple[float, float]]:
    wanted = "full" if filled else "none"
    lines = [line for line in figure.axes[panel].lines if (line.get_marker(), line.get_fillstyle()) == (marker, wanted)]
    return [(round(float(x), 6), round(float(y), 6)) for line in lines for x, y in line.get_xydata()]


def test_points_stand_at_their_costs() -> None:
    figure = anytime_figure(REPORT, title="title")
    assert marks(figure, 0, "o", filled=True) == [(1, 70), (1.5, 80)]
    assert marks(figure, 1, "o", filled=True) == [(2, 70), (3, 80), (1, 70), (1.5, 80)]
    assert marks(figure, 2, "o", filled=True) == [(1, 70), (1.5, 80), (4, 70), (6, 80)]
    assert [marks(figure, panel, "o", filled=False) for panel in range(3)] == [
        [(1.5, 80)],
        [(3, 80), (1.5, 80)],
        [(1.5, 80), (6, 80)],
    ], "the chosen one"
    assert marks(figure, 1, "D", filled=False) == [(6, 81), (3, 81)]
    assert "µJ" in figure.axes[2].get_xlabel()
    assert all(axes.get_xlim()[0] == 0 for axes in figure.axes)


def test_all_steps_are_the_choice_where_no_confidence_is() -> None:
    figure = anytime_figure(replace(REPORT, confidence=None))
    assert marks(figure, 0, "o", filled=False) == [(3, 81)]


def test_the_unit_fits_the_network() -> None:
    figure = anytime_figure(replace(REPORT, exits=(measured(0.5, 0.7, 1.0, 2.0),), all_steps=measured(None, 0.8, 3, 2)))
    assert "mJ" in figure.axes[2].get_xlabel()
    assert marks(figure, 2, "o", filled=True) == [(2, 70), (8, 70)]
