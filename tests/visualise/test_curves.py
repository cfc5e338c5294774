"""Curves of runs: drawn whatever is there, readable, and refused without a single epoch."""

import os
from math import exp
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spikformer.visualise.curves import curves_figure, draw_curves
from spikformer.visualise.figures import INK

BLUE, ORANGE, GREEN = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0x00, 0x9E, 0x73)


def rows(count: int, *, validation: bool = True, speed: float = 1.0) -> list[dict[str, float]]:
    made = []
    for epoch in range(1, count + 1):
        left = exp(-speed * epoch / 5)
        made.append({"epoch": epoch, "train_loss": 0.5 + 2 * left, "train_accuracy": 1 - 0.9 * left})
        if validation:
            made[-1] |= {"validation_loss": 0.7 + 2 * left, "validation_accuracy": 0.9 - 0.8 * left}
    return made


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB")).astype(int)


def painted(picture: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Where a colour is, nearly."""
    return (abs(picture - colour) < 12).all(-1)


def draw(path: Path, **runs: list[dict[str, float]]) -> np.ndarray:
    draw_curves(runs, path / "curves.png")
    assert os.listdir(path) == ["curves.png"]
    return pixels(path / "curves.png")


def test_one_run_has_curves_in_both_halves_and_a_legend_below(tmp_path: Path) -> None:
    picture = draw(tmp_path, run=rows(20))
    height, width = picture.shape[:2]
    assert width == 1500
    blue = painted(picture, BLUE)
    assert blue[:, : width // 2].sum() > 1000
    assert blue[:, width // 2 :].sum() > 1000
    assert blue[int(0.93 * height) :].any()


def test_losses_fall_and_accuracies_rise(tmp_path: Path) -> None:
    picture = draw(tmp_path, run=rows(20))
    upper = painted(picture, BLUE)[: int(0.8 * len(picture))]
    for half, falls in zip(np.split(upper, 2, axis=1), (True, False), strict=True):
        heights, columns = np.nonzero(half)
        first, last = heights[columns == columns.min()].mean(), heights[columns == columns.max()].mean()
        assert (first < last) == falls


def test_several_runs_have_a_colour_each(tmp_path: Path) -> None:
    picture = draw(tmp_path, one=rows(20), two=rows(30, speed=0.5), three=rows(12, speed=2))
    for colour in (BLUE, ORANGE, GREEN):
        assert painted(picture, colour).sum() > 1000


def test_more_runs_than_colours_are_drawn(tmp_path: Path) -> None:
    picture = draw(tmp_path, **{f"run_{number}": rows(10, speed=1 + number / 10) for number in range(30)})
    assert painted(picture, BLUE).any()


def test_training_is_thin_validation_thick_and_both_of_a_runs_colour() -> None:
    figure = curves_figure({"one": rows(5), "two": rows(4)})
    for axes, quantity in zip(figure.axes, ("loss", "accuracy"), strict=True):
        train, validation, *other = axes.get_lines()
        for line, split in ((train, "train"), (validation, "validation")):
            assert list(line.get_xdata()) == [1, 2, 3, 4, 5]
            assert list(line.get_ydata()) == [row[f"{split}_{quantity}"] for row in rows(5)]
        assert train.get_linewidth() < validation.get_linewidth() / 2
        assert train.get_color() == validation.get_color() != other[0].get_color() == other[1].get_color()
        assert axes.get_title("left") == quantity
    handles = figure.legends[0].get_lines()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two", "train", "validation"]
    assert handles[2].get_color() == handles[3].get_color() == INK, "which a dark page turns light"


@pytest.mark.parametrize("ending", [".svg", ".pdf"])
def test_other_formats_go_by_the_ending(tmp_path: Path, ending: str) -> None:
    draw_curves({"run": rows(5)}, tmp_path / f"curves{ending}")
    assert (b"<svg" if ending == ".svg" else b"%PDF") in (tmp_path / f"curves{ending}").read_bytes()[:200]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_run_that_went_astray_is_drawn(tmp_path: Path, loss: float) -> None:
    astray = [row | {"train_loss": loss} for row in rows(5)]
    assert painted(draw(tmp_path, run=rows(5), astray=astray), ORANGE).any()


def test_without_validation_there_is_less_to_see_but_something(tmp_path: Path) -> None:
    with_it = painted(draw(tmp_path, run=rows(20)), BLUE).sum()
    without = draw(tmp_path, run=rows(20, validation=False))
    assert painted(without, BLUE).sum() < with_it
    assert (without < 250).any(-1).mean() > 0.01
    mixed = draw(tmp_path, run=rows(20, validation=False), other=rows(20))
    assert painted(mixed, ORANGE).sum() > 1000


@pytest.mark.parametrize("validation", [True, False])
def test_one_epoch_is_a_point(tmp_path: Path, validation: bool) -> None:
    picture = draw(tmp_path, run=rows(1, validation=validation))
    for half in np.split(painted(picture[: int(0.8 * len(picture))], BLUE), 2, axis=1):
        assert half.any()


@pytest.mark.parametrize("name", ["_hidden", "a$b$", r"c$\frac{$", "n" * 300, "train", "two\nlines", ""])
def test_any_name_can_be_drawn(tmp_path: Path, name: str) -> None:
    picture = draw(tmp_path, **{name: rows(3), "other": rows(4)})
    height, width = picture.shape[:2]
    assert painted(picture, BLUE)[int(0.8 * height) :].any(), "it is in the legend"
    edge = np.concatenate([picture[:, 0], picture[:, width - 1]])
    assert (edge == 255).all(), "nothing runs over the edge"


def test_the_same_rows_make_the_same_picture(tmp_path: Path) -> None:
    first = draw(tmp_path, run=rows(5))
    assert np.array_equal(draw(tmp_path, run=rows(5)), first)


def test_no_rows_and_no_runs_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"The run second has no finished epoch to draw\."):
        draw_curves({"first": rows(2), "second": []}, tmp_path / "curves.png")
    with pytest.raises(ValueError, match=r"There is no run to draw"):
        draw_curves({}, tmp_path / "curves.png")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        draw_curves({"run": rows(2)}, tmp_path / "none" / "curves.png")
