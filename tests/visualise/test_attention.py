"""Attention over an image: black means none, whatever the picture, and each map is as bright as it can be."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from tests.mistakes import field_error

from spikformer.visualise.attention import attended, attention_figure, to_grid
from spikformer.visualise.style import save_figure

WHITE = np.full((8, 8, 3), 255, np.uint8)
BLACK = np.zeros((8, 8, 3), np.uint8)


def shown(figure: Figure) -> np.ndarray:
    (image,) = figure.axes[0].get_images()
    return np.asarray(image.get_array())


def test_no_attention_is_exactly_black_and_any_attention_is_not() -> None:
    grid = np.array([[0, 1.0], [0.01, 0]])
    for picture in (WHITE, BLACK):
        lit = attended(picture, grid)
        assert (lit[:4, :4] == 0).all()
        assert (lit[4:, 4:] == 0).all()
        assert lit[:4, 4:].min() > lit[4:, :4].max() > 5


def test_most_attention_shows_the_picture_in_full_light() -> None:
    assert (attended(WHITE, np.full((2, 2), 0.125)) == 255).all()
    photo = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    lit = attended(photo, np.ones((4, 4))).astype(int)
    brighter = photo.reshape(-1)[:, None] > photo.reshape(-1)[None]
    assert (lit.reshape(-1)[:, None] >= lit.reshape(-1)[None])[brighter].all()


def test_brightness_is_of_each_map_alone() -> None:
    grid = np.array([[0, 1.0], [3, 2]])
    assert np.array_equal(attended(WHITE, grid), attended(WHITE, grid / 1000))


def test_a_row_begins_with_the_picture_itself_and_small_ones_keep_their_pixels() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    maps = np.ones((2, 3, 4, 4))
    figure = attention_figure(picture, maps, ["head 1", "head 2"], ["step 1", "step 2", "step 3"], "block 2")
    pixels = shown(figure)
    side = 8 * 24
    for top in (0, side + 10):
        assert np.array_equal(pixels[top : top + side, :side, :3], picture.repeat(24, 0).repeat(24, 1))
    assert pixels.shape == (2 * side + 10, 4 * side + 30, 4)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["image", "step 1", "step 2", "step 3"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["head 1", "head 2"]
    assert figure.get_suptitle() == "block 2"


def test_every_map_stands_in_its_own_row_and_column() -> None:
    maps = np.zeros((2, 2, 2, 2))
    maps[0, 0, 0, 0] = maps[0, 1, 0, 1] = maps[1, 0, 1, 0] = maps[1, 1, 1, 1] = 1
    pixels = shown(attention_figure(WHITE, maps, ["a", "b"], ["c", "d"]))[..., 0]
    lit = np.argwhere(pixels[48::96, 48::96] == 255)  # no gaps here: 10 of 96 pixels do not matter to a middle
    assert [[row, column] for row, column in lit.tolist() if column >= 2] == [[0, 2], [0, 5], [3, 2], [3, 5]]


def test_zeros_are_black_in_the_file_too(tmp_path: Path) -> None:
    maps = np.zeros((1, 1, 2, 2))
    maps[0, 0, 0, 0] = 1
    figure = attention_figure(WHITE, maps, ["head"], ["step"])
    save_figure(figure, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        pixels = np.asarray(image.convert("RGB"))
    box = figure.axes[0].get_window_extent()
    bottom, right, token = int(len(pixels) - box.y0), int(box.x1), int(box.height / 2)
    lower_right = pixels[bottom - token + 6 : bottom - 6, right - token + 6 : right - 6]
    assert lower_right.size > 5000
    assert (lower_right == 0).all()


def test_a_silent_map_is_black_and_says_so() -> None:
    maps = np.ones((2, 2, 2, 2))
    maps[1, 0] = 0
    figure = attention_figure(WHITE, maps, ["a", "b"], ["c", "d"])
    (word,) = figure.axes[0].texts
    assert (word.get_text(), word.get_position()) == ("silent", (1, 1))
    assert (shown(figure)[202:, 202:394, :3] == 0).all()


@pytest.mark.parametrize(("size", "tile"), [((500, 300), (192, 115)), ((100, 200), (96, 192)), ((32, 24), (192, 144))])
def test_pictures_of_any_size_fit_and_keep_their_proportions(size: tuple[int, int], tile: tuple[int, int]) -> None:
    picture = np.broadcast_to(np.uint8(200), (*size, 3))
    pixels = shown(attention_figure(picture, np.ones((1, 1, 7, 5)), ["a"], ["b"]))
    assert pixels.shape[:2] == (tile[0], 2 * tile[1] + 10)


def test_tokens_lie_row_by_row() -> None:
    tokens = np.arange(12).reshape(2, 6)
    grids = [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]
    for side in (1, 4):
        assert to_grid(tokens, 2 * side, 3 * side).tolist() == grids


def test_rows_may_have_grids_of_their_own() -> None:
    rows = [np.ones((2, 4, 4)), np.ones((2, 1, 1))]
    pixels = shown(attention_figure(WHITE, rows, ["fine", "coarse"], ["a", "b"]))
    assert (pixels[..., :3][pixels[..., 3] > 0] == 255).all()


def test_wrong_use() -> None:
    maps = np.ones((1, 1, 2, 2))
    for wrong in (WHITE.astype(float), WHITE[..., :1], WHITE[..., 0], WHITE[:0]):
        with field_error("picture", list(wrong.shape)):
            attention_figure(wrong, maps, ["a"], ["b"])
    for wrong in (maps[0], maps[:0], maps[:, :0], [np.ones((2, 1, 1)), np.ones((1, 1, 1))]):
        with field_error("maps"):
            attention_figure(WHITE, wrong, ["a"], ["b"])
    for value in (-0.5, np.nan, np.inf):
        with field_error("maps", f"{value:g}"):
            attention_figure(WHITE, np.full((1, 1, 2, 2), value), ["a"], ["b"])
    with field_error("titles", 2):
        attention_figure(WHITE, maps, ["a", "b"], ["c"])
    for size in ((2, 3), (4, 5), (1, 1)):
        with field_error("tokens", 5):
            to_grid(np.ones((1, 5)), *size)
