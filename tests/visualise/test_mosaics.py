"""Mosaics: every tile in its place, to the pixel, and gaps that show the page."""

import numpy as np
import pytest

from spikformer.visualise.figures import house_style
from spikformer.visualise.mosaics import enlarged, mosaic


def tiles(num_rows: int, num_columns: int, height: int = 40, width: int = 60) -> np.ndarray:
    """Each of a gray of its own."""
    gray = np.arange(num_rows * num_columns, dtype=np.uint8).reshape(num_rows, num_columns, 1, 1, 1)
    return np.broadcast_to(gray, (num_rows, num_columns, height, width, 3))


def test_tiles_lie_in_rows_and_columns_with_clear_gaps() -> None:
    with house_style():
        _, axes = mosaic(tiles(2, 3), ["a", "b"], ["x", "y", "z"])
    (image,) = axes.get_images()
    pixels = np.asarray(image.get_array())
    assert pixels.shape == (40 + 10 + 40, 60 + 10 + 60 + 10 + 60, 4)
    assert (pixels[:40, 70:130] == (1, 1, 1, 255)).all()
    assert (pixels[50:, 140:] == (5, 5, 5, 255)).all()
    assert (pixels[40:50, :, 3] == 0).all()
    assert (pixels[:, 60:70, 3] == 0).all()


def test_titles_stand_at_the_middles_of_their_tiles() -> None:
    with house_style():
        figure, axes = mosaic(tiles(2, 3), ["a", "b"], ["x", "y", "z"], "Title", "Described.")
    left, right, bottom, top = axes.get_images()[0].get_extent()
    assert (left, right) == pytest.approx((-60 / 140, 2 + 60 / 140))
    assert (top, bottom) == pytest.approx((-40 / 100, 1 + 40 / 100))
    assert (axes.get_xlim(), axes.get_ylim()) == ((left, right), (bottom, top)), "outlines move no edge"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["x", "y", "z"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    assert figure.get_suptitle() == "Title"
    assert figure.get_label() == "Described."
    figure.canvas.draw()
    box = axes.get_window_extent()
    assert box.width / box.height == pytest.approx(200 / 90, rel=0.02), "pixels are square"


def test_many_tiles_shrink_but_keep_room_for_their_titles() -> None:
    def width(num_columns: int) -> float:
        with house_style():
            figure, _ = mosaic(tiles(1, num_columns, 190, 190), ["a"], ["step 10"] * num_columns)
        return figure.get_figwidth()

    assert width(8) - width(4) == pytest.approx(4 * 200 / 150)
    assert width(16) == pytest.approx(width(12))
    assert width(60) - width(50) == pytest.approx(10 * 0.4 * 200 / 150)


def test_a_grid_is_enlarged_by_blocks() -> None:
    grid = np.array([[1, 2], [3, 4]])
    assert enlarged(grid, 4, 6).tolist() == [[1, 1, 1, 2, 2, 2]] * 2 + [[3, 3, 3, 4, 4, 4]] * 2
    uneven = enlarged(np.arange(3)[None], 1, 8)[0]
    assert uneven.tolist() == sorted(uneven)
    assert set(np.bincount(uneven)) == {2, 3}
    assert enlarged(np.zeros((2, 2, 3)), 4, 4).shape == (4, 4, 3)


def test_each_row_and_column_needs_a_title() -> None:
    with pytest.raises(ValueError, match="2 rows and 3 columns of tiles need as many titles, got 2 and 2"):
        mosaic(tiles(2, 3), ["a", "b"], ["x", "y"])
