"""Mosaics: every tile in its place, to the pixel, gaps that show the page, and room for whatever is written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image

from spikformer.visualise.mosaic import mosaic
from spikformer.visualise.style import save_figure
from spikformer.visualise.tiles import EVENT_LEGEND

PURPLE = np.full((40, 40, 3), (200, 0, 200), np.uint8)  # a colour that no letter has
LETTERS = st.text(st.characters(), max_size=60)  # of any script, lone surrogates and control characters among them


def tiles(num_rows: int, num_columns: int) -> list[list[np.ndarray]]:
    """Each of a gray of its own."""
    rows = np.arange(num_rows * num_columns).reshape(num_rows, num_columns)
    return [[np.full((40, 60, 3), gray, np.uint8) for gray in row] for row in rows]


def pixels(figure: Figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def tile_boxes(picture: np.ndarray, side: int) -> list[tuple[int, int]]:
    """Left and top of the inside of every purple tile that is whole; a letter over one would break it."""
    inner = side - 4  # within its outline
    sums = np.pad((picture == PURPLE[0, 0]).all(-1).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    inside = sums[inner:, inner:] - sums[:-inner, inner:] - sums[inner:, :-inner] + sums[:-inner, :-inner]
    found = inside == inner**2
    found[1:] &= ~found[:-1]  # an outline may be thinner: the first place of several
    found[:, 1:] &= ~found[:, :-1]
    return [(int(left), int(top)) for top, left in np.argwhere(found)]


def test_tiles_lie_in_rows_and_columns_with_clear_gaps() -> None:
    _, axes = mosaic(tiles(2, 3), ["a", "b"], ["x", "y", "z"])
    (image,) = axes.get_images()
    joined = np.asarray(image.get_array())
    assert joined.shape == (40 + 10 + 40, 60 + 10 + 60 + 10 + 60, 4)
    assert (joined[:40, 70:130] == (1, 1, 1, 255)).all()
    assert (joined[50:, 140:] == (5, 5, 5, 255)).all()
    assert (joined[40:50, :, 3] == 0).all()
    assert (joined[:, 60:70, 3] == 0).all()


def test_titles_stand_at_the_middles_of_their_tiles() -> None:
    figure, axes = mosaic(tiles(2, 3), ["a", "b"], ["x", "y", "z"], "Title", "Described.")
    left, right, bottom, top = axes.get_images()[0].get_extent()
    assert (left, right) == pytest.approx((-60 / 140, 2 + 60 / 140))
    assert (top, bottom) == pytest.approx((-40 / 100, 1 + 40 / 100))
    assert (axes.get_xlim(), axes.get_ylim()) == ((left, right), (bottom, top)), "outlines move no edge"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["x", "y", "z"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    assert figure.get_suptitle() == "Title"
    assert figure.get_label() == "Described."


@pytest.mark.parametrize("num_columns", [1, 8, 25])
def test_a_png_has_every_pixel_of_every_tile(tmp_path: Path, num_columns: int) -> None:
    """However many: a wide mosaic has more pixels to the inch."""
    noise = np.random.default_rng(0).integers(0, 256, (100, 100, 3), np.uint8)
    figure, axes = mosaic([[noise] * num_columns], ["a"], [], "Title")
    save_figure(figure, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        picture = np.asarray(image.convert("RGB"))
    box = axes.get_window_extent()
    left, top = round(box.x0), len(picture) - round(box.y1)
    for column in range(num_columns):
        drawn = picture[top : top + 100, left + 110 * column :][:, :100]
        assert np.array_equal(drawn[2:-2, 2:-2], noise[2:-2, 2:-2]), "but for its outline"
    assert figure.get_figwidth() < 16


def test_rows_may_be_shorter_and_columns_without_titles() -> None:
    figure, axes = mosaic([[PURPLE] * 3, [PURPLE], [PURPLE] * 2], ["a", "b", "c"])
    boxes = tile_boxes(pixels(figure), 40)
    lefts, tops = (sorted(set(edges)) for edges in zip(*boxes, strict=True))
    places = [(lefts.index(left), tops.index(top)) for left, top in boxes]
    assert places == [(0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 2)]
    assert set(np.diff(lefts)) == set(np.diff(tops)) == {50}
    assert len(axes.get_xticks()) == 0


@given(row=LETTERS, title=LETTERS, column=LETTERS)
@example("猫と犬", "قطة على الطاولة", "😀👨‍👩‍👧")
@example("x" * 300, "word " * 300, "n")
@example("name\udcff.jpg", "a\nb\n\n\nc\nd\ne", "")
@settings(max_examples=15, deadline=None)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_nothing_is_written_over_a_tile_or_the_edge(row: str, title: str, column: str) -> None:
    titles = [column[:3], "b", "c"]  # wider than its tile, a title meets its neighbours
    figure, _ = mosaic([[PURPLE] * 3, [PURPLE] * 3], [row, "cat"], titles, title, legend=EVENT_LEGEND)
    picture = pixels(figure)
    assert len(tile_boxes(picture, 40)) == 6
    edge = np.concatenate([picture[0], picture[-1], picture[:, 0]])
    assert (edge == 255).all()


def test_the_legend_shows_its_colours_below_the_tiles() -> None:
    figure, axes = mosaic(tiles(1, 3), ["a"], legend=EVENT_LEGEND)
    drawn = pixels(figure)
    below = drawn[len(drawn) - round(axes.get_window_extent().y0) + 2 :]
    for _, colour in EVENT_LEGEND:
        assert (below == colour).all(-1).any()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ON", "OFF", "both"]


def test_a_clear_rim_of_a_tile_stays_clear() -> None:
    clear = np.zeros((40, 40, 4), np.uint8)
    _, axes = mosaic([[clear]], ["a"])
    assert not np.asarray(axes.get_images()[0].get_array()).any()


def test_tiles_have_one_size_and_each_row_a_title() -> None:
    with pytest.raises(ValueError, match="got 2 and 2"):
        mosaic(tiles(2, 3), ["a", "b"], ["x", "y"])
    with pytest.raises(ValueError, match=r"\[3, 0\]"):
        mosaic([[PURPLE] * 3, []], ["a", "b"])
    with pytest.raises(ValueError, match=r"\[\]"):
        mosaic([], [])
    with pytest.raises(ValueError, match=r"\(20, 20\), \(40, 40\)"):
        mosaic([[PURPLE, PURPLE[:20, :20]]], ["a"])
