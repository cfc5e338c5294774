"""Spikes in time: a mark for each, traces that fall where one is fired, and events beside spikes, step by step."""

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from tests.mistakes import field_error

from spikformer.analysis.recorder import record
from spikformer.models import create_model
from spikformer.visualise.firing import events_and_spikes_figure, membrane_figure, raster_figure
from spikformer.visualise.mosaic import NO_EVENT_COLOUR, OFF_COLOUR, ON_COLOUR
from spikformer.visualise.style import save_figure


def marks(axes: Axes) -> list[tuple[float, float]]:
    """Middle and row of each mark, and that it is level."""
    (line,) = axes.get_lines()
    x, y = (np.asarray(part).reshape(-1, 3) for part in (line.get_xdata(), line.get_ydata()))
    assert np.isnan(x[:, 2]).all()
    assert (y[:, 0] == y[:, 1]).all()
    return [((left + right) / 2, row) for (left, right, _), (row, _, _) in zip(x, y, strict=True)]


def test_every_spike_has_a_mark_at_its_step_and_neuron_counted_from_one() -> None:
    spikes = np.zeros((3, 5))
    spikes[0, 4] = spikes[2, 0] = spikes[2, 1] = 1
    above, axes = raster_figure(spikes, "layer").axes
    assert np.array(marks(axes)) == pytest.approx(np.array([(1, 5), (3, 1), (3, 2)]))
    assert axes.get_ylim() == (5.5, 0.5), "the first neuron is above"
    assert [bar.get_height() for bar in above.patches] == [1, 0, 2]
    assert above.get_title("left") == "layer"


def test_a_silent_raster_and_a_large_one_can_be_drawn(tmp_path: Path) -> None:
    assert marks(raster_figure(np.zeros((4, 3))).axes[1]) == []
    spikes = np.random.default_rng(0).random((16, 2000)) < 0.2
    save_figure(raster_figure(spikes), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size < 60 * spikes.sum(), "one path"
    assert len(marks(raster_figure(spikes).axes[1])) == spikes.sum()


def test_marks_of_neighbours_do_not_touch(tmp_path: Path) -> None:
    figure = raster_figure(np.ones((2, 40)))
    save_figure(figure, tmp_path / "a.png")
    axes = figure.axes[1]
    (line,) = axes.get_lines()
    row = axes.get_window_extent().height / figure.dpi * 72 / 40
    assert 0.5 * row < line.get_linewidth() < 0.9 * row


def test_a_trace_goes_from_rest_through_h_and_falls_to_the_reset() -> None:
    membrane, spikes = np.array([[0.6], [1.2], [0.3]]), np.array([[0], [1], [0]])
    (axes,) = membrane_figure(membrane, spikes, 1.0, ["one"], v_reset=0.1).axes
    threshold, trace, fired = axes.get_lines()
    assert set(np.asarray(threshold.get_ydata())) == {1.0}
    assert np.transpose(trace.get_data()).tolist() == [
        [0, 0.1],
        [1, 0.6],
        [1, 0.6],
        [2, 1.2],
        [2, 0.1],
        [3, 0.3],
        [3, 0.3],
    ]
    assert np.transpose(fired.get_data()).tolist() == [[2, 1.2]]
    assert axes.get_title("left") == "one"


def test_a_soft_reset_falls_by_the_threshold() -> None:
    membrane, spikes = np.array([[0.6], [1.2], [0.3]]), np.array([[0], [1], [0]])
    (axes,) = membrane_figure(membrane, spikes, 1.0, v_reset=None).axes
    trace = axes.get_lines()[1]
    assert np.asarray(trace.get_ydata()) == pytest.approx([0, 0.6, 0.6, 1.2, 0.2, 0.3, 0.3])


def test_each_neuron_has_a_row_and_a_name() -> None:
    figure = membrane_figure(np.zeros((4, 3)), np.zeros((4, 3)), 0.5)
    assert [axes.get_title("left") for axes in figure.axes] == ["neuron 1", "neuron 2", "neuron 3"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["threshold", "membrane", "spike"]
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low < 0 < 0.5 < high, "the threshold is in sight of a neuron that never comes near"


def test_a_models_own_membranes_fire_at_the_threshold() -> None:
    model = create_model("spikformer_tiny_digits").eval()
    layer = "stem.stages.0.neuron"
    with torch.no_grad(), record(model) as seen:
        model(torch.randn(1, 1, 8, 8))
    membrane, spikes = (x[:, 0].flatten(1).numpy() for x in (seen.membrane(layer), seen.spikes_of(layer)))
    busiest = np.argsort(-spikes.sum(0))[:4]
    figure = membrane_figure(membrane[:, busiest], spikes[:, busiest], 1.0)
    drawn = sum(len(axes.get_lines()[2].get_xdata()) for axes in figure.axes)
    assert drawn == spikes[:, busiest].sum() > 0
    for axes in figure.axes:
        assert (np.asarray(axes.get_lines()[2].get_ydata()) >= 1.0).all()


def test_wrong_rasters_and_membranes_raise() -> None:
    for shape in ((3,), (0, 4), (2, 3, 4)):
        with field_error("spikes", list(shape)):
            raster_figure(np.zeros(shape))
    with field_error("membrane", "[3, 2]", "[3, 1]"):
        membrane_figure(np.zeros((3, 2)), np.zeros((3, 1)), 1.0)
    with field_error("names", 2, 1):
        membrane_figure(np.zeros((3, 2)), np.zeros((3, 2)), 1.0, ["one"])


YELLOW = (240, 228, 66)
SIDE = 4 * 48


def tile(figure: Figure, row: int, step: int, side: int = SIDE) -> np.ndarray:
    (image,) = figure.axes[0].get_images()
    top, left = row * (side + 10), step * (side + 10)
    return np.asarray(image.get_array())[top : top + side, left : left + side, :3]


def frames() -> np.ndarray:
    """Three steps: ON above left, OFF below right, nothing."""
    made = np.zeros((3, 2, 4, 4))
    made[0, 1, 0, 0] = made[1, 0, 3, 3] = 1
    return made


def test_events_and_spikes_keep_their_step_and_place() -> None:
    spikes = np.zeros((3, 2, 2))
    spikes[0, 0, 1] = 4
    spikes[2, 1, 0] = 1
    figure = events_and_spikes_figure(frames(), {"stem 1": spikes}, "a digit")
    assert (tile(figure, 0, 0)[:48, :48] == ON_COLOUR).all()
    assert (tile(figure, 0, 0)[48:] == NO_EVENT_COLOUR).all()
    assert (tile(figure, 0, 1)[-48:, -48:] == OFF_COLOUR).all()
    assert (tile(figure, 0, 2) == NO_EVENT_COLOUR).all()
    assert (tile(figure, 1, 0)[:96, 96:] == YELLOW).all()
    assert (tile(figure, 1, 0)[96:] == NO_EVENT_COLOUR).all()
    assert (tile(figure, 1, 1) == NO_EVENT_COLOUR).all()
    few = tile(figure, 1, 2)[96:, :96].astype(int)
    assert (few.sum(-1) < sum(YELLOW)).all(), "fewer spikes are darker, at any step"
    assert (few.sum(-1) > 2 * sum(NO_EVENT_COLOUR)).all(), "but seen"


def test_rows_are_layers_columns_steps_and_colours_explained() -> None:
    figure = events_and_spikes_figure(frames(), {"stem 1": np.ones((3, 4, 4)), "stem 2": np.ones((3, 1, 1))}, "a 3")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["step 1", "step 2", "step 3"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["events", "stem 1", "stem 2"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ON", "OFF", "both", "spikes"]
    patches = [
        tuple(round(255 * part) for part in patch.get_facecolor()[:3]) for patch in figure.legends[0].get_patches()
    ]
    assert (patches[0], patches[1], patches[3]) == (ON_COLOUR, OFF_COLOUR, YELLOW)
    assert figure.get_suptitle() == "a 3"


def test_a_wide_sensor_has_a_dark_rim_and_spikes_lie_below_their_events() -> None:
    wide = np.zeros((1, 2, 4, 8))
    wide[0, 1, 0, 0] = 1
    spikes = np.zeros((1, 2, 4))
    spikes[0, 0, 0] = 1
    figure = events_and_spikes_figure(wide, {"stem": spikes})
    events, fired = (np.argwhere((tile(figure, row, 0) != NO_EVENT_COLOUR).any(-1)) for row in (0, 1))
    assert events.min(0).tolist() == fired.min(0).tolist() == [48, 0]
    assert events.max(0).tolist() == [71, 23]
    assert fired.max(0).tolist() == [95, 47]


def test_a_map_larger_than_the_events_loses_no_spike() -> None:
    spikes = np.eye(400)[None]
    figure = events_and_spikes_figure(np.ones((1, 2, 4, 4)), {"stem": spikes})
    lit = (tile(figure, 1, 0, 400) == YELLOW).all(-1)
    assert np.array_equal(lit, np.eye(400, dtype=bool))


def test_silence_is_drawn(tmp_path: Path) -> None:
    figure = events_and_spikes_figure(np.zeros((2, 2, 4, 4)), {"stem": np.zeros((2, 4, 4))})
    save_figure(figure, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert (np.asarray(picture.convert("RGB")) == NO_EVENT_COLOUR).all(-1).mean() > 0.2


def test_wrong_events_and_spikes_raise() -> None:
    spikes = {"stem": np.zeros((3, 2, 2))}
    for wrong in (frames()[0], frames()[:, :1], frames()[:0]):
        with field_error("frames", list(wrong.shape)):
            events_and_spikes_figure(wrong, spikes)
    with field_error("spikes"):
        events_and_spikes_figure(frames(), {})
    for shape in ((2, 2, 2), (3, 4), (3, 0, 2)):
        with field_error("spikes", "stem", 3, list(shape)):
            events_and_spikes_figure(frames(), {"stem": np.zeros(shape)})
    with field_error("spikes", "stem", "NaN"):
        events_and_spikes_figure(frames(), {"stem": np.full((3, 2, 2), -1)})
