"""Curves, confusion matrices and ablations show what they are given, whatever their number and names."""

import os
import re
from math import exp
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from tests.mistakes import field_error

from spikformer.analysis.ablation import CellResult, Line, summarise, variants
from spikformer.presets import get_preset
from spikformer.visualise.accuracy import ablation_figure, confusion_figure, curves_figure, draw_confusion, draw_curves
from spikformer.visualise.style import INK, save_figure

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


def test_no_rows_and_no_runs_are_errors_and_leave_nothing(tmp_path: Path) -> None:
    with field_error("runs", "second"):
        draw_curves({"first": rows(2), "second": []}, tmp_path / "curves.png")
    with field_error("runs"):
        draw_curves({}, tmp_path / "curves.png")
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        draw_curves({"run": rows(2)}, tmp_path / "none" / "curves.png")


# The confusion matrix.


@pytest.mark.parametrize("count", [2, 10, 60])
def test_any_number_of_classes_is_drawn(count: int, tmp_path: Path) -> None:
    confusion = np.random.default_rng(0).integers(0, 9, (count, count)).tolist()
    draw_confusion(confusion, [f"class {number}" for number in range(count)], tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as picture:
        assert picture.width == picture.height > 600


def test_right_answers_are_dark_and_a_class_without_samples_is_light(tmp_path: Path) -> None:
    draw_confusion([[9, 0], [0, 0]], ["cat", "dog"], tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as picture:
        pixels = np.asarray(picture.convert("L"))
    height, width = pixels.shape
    assert np.median(pixels[height // 8 : height // 4, width // 4 : width // 2]) < 100
    assert np.median(pixels[height // 2 : height * 3 // 4, width * 3 // 5 : width * 7 // 8]) > 200


def test_rows_are_classes_shades_their_shares_and_numbers_samples() -> None:
    figure = confusion_figure([[3, 1], [0, 2]], ["cat", "dog"])
    axes = figure.axes[0]
    assert axes.get_images()[0].get_array().tolist() == [[0.75, 0.25], [0, 1]]
    assert {text.get_position(): text.get_text() for text in axes.texts} == {(0, 0): "3", (1, 0): "1", (1, 1): "2"}
    inks = {text.get_text(): text.get_color() for text in axes.texts}
    assert inks == {"3": "#ffffff", "1": "#101010", "2": "#ffffff"}, "light on dark, dark on light, on any page"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["cat", "dog"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("answer", "class")


def test_a_vector_picture_and_names_in_any_script(tmp_path: Path) -> None:
    draw_confusion([[3, 1], [0, 2]], ["猫", "$dog$" * 50], tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert "猫" in text
    assert "…" in text


def test_names_and_counts_must_agree(tmp_path: Path) -> None:
    with field_error("confusion", 3, (2, 2)):
        draw_confusion([[1, 0], [0, 1]], ["a", "b", "c"], tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


BLUE, ORANGE = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)
CIFAR10 = get_preset("spikformer_4_384_cifar10").config
IMAGENET = get_preset("spikformer_8_512_imagenet").config


def cell(name: str, seed: int, accuracy: float) -> CellResult:
    return CellResult(name, seed, "finished", {"accuracy": accuracy})


def some_lines() -> list[Line]:
    cells = [cell("ssa", 0, 0.94), cell("ssa", 1, 0.95), cell("ssa", 2, 0.96), cell("none", 0, 0.90)]
    cells += [CellResult("none", 1, "diverged"), CellResult("random", 0, "diverged"), CellResult("relu", 0, "failed")]
    return [line for line in summarise(variants("attention", CIFAR10, "cifar10"), cells) if line.cells]


def points(figure: Figure, marker: str) -> list[tuple[float, float]]:
    """Where a marker is drawn: percents, and rows."""
    axes: Axes = figure.axes[0]
    found = [line for line in axes.lines if line.get_marker() == marker]
    return [(round(float(x), 6), float(y)) for line in found for x, y in zip(*line.get_data(), strict=True)]


def words(figure: Figure) -> list[str]:
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return [*legends, *(text.get_text() for text in figure.axes[0].texts)]


def test_every_seed_is_a_dot_with_their_mean_and_deviation() -> None:
    figure = ablation_figure(some_lines(), "accuracy", title="attention", label="right, %")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ssa", "relu", "none", "random"]
    assert axes.yaxis_inverted(), "the first variant is on top"
    assert (axes.get_title("left"), axes.get_xlabel()) == ("attention", "right, %")
    assert points(figure, "o") == [(94, 0), (95, 0), (96, 0), (90, 2)]
    assert points(figure, "|") == [(95, 0)], "one seed has no deviation"
    bars = [collection.get_segments()[0][:, 0].tolist() for collection in axes.collections]
    assert bars == [pytest.approx([94, 96])]


def test_the_papers_value_is_hollow_and_named() -> None:
    figure = ablation_figure(some_lines(), "accuracy")
    assert points(figure, "D") == [(95.19, 0), (94.34, 1)]
    hollow = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert all(line.get_fillstyle() == "none" for line in hollow)
    assert "paper, Spikformer-4-384" in words(figure)
    sizes = summarise(variants("size", CIFAR10, "cifar10"), [cell("4-256", 0, 0.9)])
    assert "paper, each size" in words(ablation_figure(sizes, "accuracy"))
    digits = get_preset("spikformer_tiny_digits").config
    without = ablation_figure(summarise(variants("neuron", digits, "digits"), [cell("lif", 0, 0.9)]), "accuracy")
    assert not points(without, "D")
    assert words(without) == ["one seed"]


def test_what_has_no_dot_is_said() -> None:
    said = words(ablation_figure(some_lines(), "accuracy"))
    assert said[-4:] == ["✗ did not converge", "1 failed", "1 of 2 ✗", "1 of 1 ✗"]
    rows = summarise(variants("attention", IMAGENET, "imagenet"), [cell("identity", 0, 0.7)])
    said = words(ablation_figure([rows[3]], "accuracy"))
    assert said[-2:] == ["✗ did not converge", "paper ✗"]


def test_nothing_finished_can_be_drawn_and_nothing_at_all_is_an_error() -> None:
    lines = [line for line in some_lines() if line.variant.name == "random"]
    figure = ablation_figure(lines, "accuracy")
    assert figure.axes[0].get_xlim() == (0, 100)
    assert not points(figure, "o")
    with field_error("lines"):
        ablation_figure([], "accuracy")


def test_an_ablation_is_saved(tmp_path: Path) -> None:
    figure = ablation_figure(some_lines(), "accuracy", title="attention: spikformer_4_384_cifar10")
    for ending in ("png", "svg"):
        save_figure(figure, tmp_path / f"ablation.{ending}")
    with Image.open(tmp_path / "ablation.png") as image:
        picture = np.asarray(image.convert("RGB")).astype(int)
    for colour in (BLUE, ORANGE):
        assert (abs(picture - colour) < 12).all(-1).sum() > 50
    edge = np.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])
    assert (edge == 255).all(), "nothing runs over the edge"
    letters = re.findall(r">([^<>]+)</text>", (tmp_path / "ablation.svg").read_text())
    assert {"ssa", "random", "1 of 2 ✗"} <= set(letters)
