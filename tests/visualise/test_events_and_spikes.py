"""Events beside spikes: steps in columns, layers in rows, each place where it was."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from spikformer.visualise.events_and_spikes import events_and_spikes_figure
from spikformer.visualise.mosaic import NO_EVENT_COLOUR, OFF_COLOUR, ON_COLOUR
from spikformer.visualise.style import save_figure

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


def test_wrong_use() -> None:
    spikes = {"stem": np.zeros((3, 2, 2))}
    for wrong in (frames()[0], frames()[:, :1], frames()[:0]):
        with pytest.raises(ValueError, match=r"\[T, 2, H, W\]"):
            events_and_spikes_figure(wrong, spikes)
    with pytest.raises(ValueError, match="at least one"):
        events_and_spikes_figure(frames(), {})
    for shape in ((2, 2, 2), (3, 4), (3, 0, 2)):
        with pytest.raises(ValueError, match=r"stem .*T = 3"):
            events_and_spikes_figure(frames(), {"stem": np.zeros(shape)})
    with pytest.raises(ValueError, match="stem"):
        events_and_spikes_figure(frames(), {"stem": np.full((3, 2, 2), -1)})
