"""Tiles have exactly the pixels of their pictures, and lie in rows and columns under their titles."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image
from tests.mistakes import field_error

from spikformer.visualise.mosaic import (
    EVENT_LEGEND,
    NO_EVENT_COLOUR,
    OFF_COLOUR,
    ON_COLOUR,
    brightest_count,
    enlarged,
    event_picture,
    event_tile,
    image_tile,
    mosaic,
    sample_picture,
    tile_side,
)
from spikformer.visualise.style import save_figure


def image(channels: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 200, (channels, height, width), np.uint8)


def colour(off: float, on: float, brightest: float = 1) -> tuple[int, ...]:
    """Of a single pixel."""
    return tuple(event_picture(np.reshape([off, on], (2, 1, 1)).astype(np.float32), brightest)[0, 0].tolist())


def shown(tile: np.ndarray) -> np.ndarray:
    """What is not clear, cut out."""
    rows, columns = np.nonzero(tile[..., 3])
    return tile[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1, :3]


def test_a_small_image_is_enlarged_by_an_integer_factor_to_the_pixel() -> None:
    small = image(3, 32, 32)
    tile = image_tile(small, 200)
    assert (tile.shape, tile.dtype) == ((200, 200, 4), np.uint8)
    assert np.array_equal(shown(tile), small.transpose(1, 2, 0).repeat(6, 0).repeat(6, 1))
    assert np.array_equal(tile[4:196, 4:196, :3], shown(tile)), "it lies in the middle"


def test_an_image_of_the_tiles_size_is_left_alone() -> None:
    same = image(3, 48, 48)
    assert np.array_equal(image_tile(same, 48)[..., :3], same.transpose(1, 2, 0))


def test_a_gray_image_stays_gray() -> None:
    digit = image(1, 8, 8)
    assert np.array_equal(image_tile(digit, 8)[..., :3], digit.transpose(1, 2, 0).repeat(3, 2))


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [(10, 20, (90, 180)), (20, 10, (180, 90)), (300, 600, (96, 192)), (601, 200, (192, 64)), (1, 5000, (1, 192))],
)
def test_proportions_are_kept(height: int, width: int, expected: tuple[int, int]) -> None:
    assert shown(image_tile(image(3, height, width), 192)).shape[:2] == expected


def test_a_large_image_shrinks_smoothly() -> None:
    checkers = np.indices((256, 256)).sum(0) % 2 * 200
    tile = image_tile(checkers[None].astype(np.uint8), 64)
    assert abs(tile[..., :3].astype(int) - 100).max() < 5


def test_on_off_both_and_none_have_their_colours() -> None:
    assert colour(0, 0) == NO_EVENT_COLOUR
    assert colour(0, 1) == ON_COLOUR
    assert colour(1, 0) == OFF_COLOUR
    assert min(colour(1, 1)) > 200, "orange and blue light make nearly white"
    assert dict(EVENT_LEGEND) == {"ON": ON_COLOUR, "OFF": OFF_COLOUR, "both": colour(1, 1)}


def test_on_and_off_are_equally_light_and_a_lone_event_is_seen() -> None:
    def luminance(rgb: tuple[int, ...]) -> float:
        linear = (np.array(rgb) / 255) ** 2.2
        return float(linear @ [0.2126, 0.7152, 0.0722])

    assert luminance(ON_COLOUR) == pytest.approx(luminance(OFF_COLOUR), rel=0.1)
    for lone in (colour(1, 0, brightest=5), colour(0, 1, brightest=5)):
        assert (luminance(lone) + 0.05) / (luminance(NO_EVENT_COLOUR) + 0.05) > 2


def test_more_events_are_stronger_up_to_the_brightest() -> None:
    steps = [sum(colour(0, count, brightest=4)) for count in (0, 1, 2, 3, 4)]
    assert steps == sorted(set(steps))
    assert colour(0, 4, brightest=4) == colour(0, 1000, brightest=4) == ON_COLOUR


def test_events_keep_their_place() -> None:
    frame = np.zeros((2, 3, 4), np.float32)
    frame[1, 2, 0] = 1
    tile = event_tile(frame, 8, 1)
    assert np.argwhere((tile[..., :3] == ON_COLOUR).all(-1)).tolist() == [[5, 0], [5, 1], [6, 0], [6, 1]]


def test_one_hot_pixel_does_not_darken_the_rest() -> None:
    frames = np.zeros((10, 2, 20, 20), np.float32)
    frames[:, :, :10] = 3
    frames[4, 0, 0, 0] = 10_000
    assert brightest_count(frames) == 3
    assert brightest_count(np.zeros((10, 2, 4, 4), np.float32)) == 1


def test_a_side_is_found_that_an_image_fills() -> None:
    assert [tile_side(edge, edge) for edge in (8, 28, 32, 34, 128, 192, 500)] == [192, 196, 192, 204, 256, 192, 192]
    assert tile_side(480, 640, about=100) == 100
    assert shown(image_tile(image(3, 128, 96), tile_side(128, 96))).shape[0] == 256


def test_wrong_use() -> None:
    for wrong in (image(2, 4, 4), image(3, 4, 4).astype(np.float32), image(3, 4, 0), image(3, 4, 4)[0]):
        with field_error("image", wrong.dtype, list(wrong.shape)):
            image_tile(wrong, 8)
    with field_error("side", 0):
        image_tile(image(3, 4, 4), 0)
    with field_error("frame", "[3, 4, 4]"):
        event_tile(np.zeros((3, 4, 4)), 8, 1)
    for count in (-1, np.nan):
        with field_error("frame", "NaN"):
            event_tile(np.full((2, 4, 4), count), 8, 1)
    for brightest in (0, np.nan, np.inf):
        with field_error("brightest", brightest):
            event_tile(np.zeros((2, 4, 4)), 8, brightest)


def test_a_sample_as_a_picture_keeps_its_pixels() -> None:
    photograph, digit = image(3, 6, 9), image(1, 8, 5)
    assert np.array_equal(sample_picture(photograph), photograph.transpose(1, 2, 0))
    shown_digit = sample_picture(digit)
    assert (shown_digit.shape, shown_digit.dtype) == ((8, 5, 3), np.uint8)
    assert all(np.array_equal(shown_digit[..., channel], digit[0]) for channel in range(3))


@pytest.mark.parametrize(("height", "width"), [(4, 4), (3, 7), (7, 4), (2, 5)])
def test_frames_as_a_picture_are_all_their_events_at_once(height: int, width: int) -> None:
    frames = np.zeros((3, 2, height, width), np.float32)
    frames[0, 1, 0, 0] = 2  # ON, in the first corner
    frames[:, 0, -1, -1] = 1  # OFF, in the last, a little at every step
    frames[2, :, 0, -1] = 3
    picture = sample_picture(frames)
    assert (picture.shape, picture.dtype) == ((height, width, 3), np.uint8)
    assert tuple(picture[-1, -1]) == OFF_COLOUR
    assert tuple(picture[0, 0]) == colour(0, 2, brightest=3)
    assert tuple(picture[0, -1]) == dict(EVENT_LEGEND)["both"]
    assert tuple(picture[-1, 0]) == NO_EVENT_COLOUR
    assert (picture != NO_EVENT_COLOUR).any(-1).sum() == 3


def test_silent_frames_are_dark() -> None:
    assert (sample_picture(np.zeros((2, 2, 3, 5), np.float32)) == NO_EVENT_COLOUR).all()


def test_a_grid_is_enlarged_by_blocks() -> None:
    grid = np.array([[1, 2], [3, 4]])
    assert enlarged(grid, 4, 6).tolist() == [[1, 1, 1, 2, 2, 2]] * 2 + [[3, 3, 3, 4, 4, 4]] * 2
    uneven = enlarged(np.arange(3)[None], 1, 8)[0]
    assert uneven.tolist() == sorted(uneven)
    assert set(np.bincount(uneven)) == {2, 3}
    assert enlarged(np.zeros((2, 2, 3)), 4, 4).shape == (4, 4, 3)


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
    with field_error("titles", 2, 3):
        mosaic(tiles(2, 3), ["a", "b"], ["x", "y"])
    with field_error("tiles", "[3, 0]"):
        mosaic([[PURPLE] * 3, []], ["a", "b"])
    with field_error("tiles", "[]"):
        mosaic([], [])
    with field_error("tiles", (20, 20), (40, 40)):
        mosaic([[PURPLE, PURPLE[:20, :20]]], ["a"])
