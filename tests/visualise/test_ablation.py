"""The picture of an ablation: every seed is there, so is the paper, and nothing that is not there is drawn."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from spikformer.analysis.ablation import CellResult, Line, summarise, variants
from spikformer.presets import get_preset
from spikformer.visualise.ablation import ablation_figure
from spikformer.visualise.style import save_figure

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
    with pytest.raises(ValueError, match="at least one"):
        ablation_figure([], "accuracy")


def test_files_show_it(tmp_path: Path) -> None:
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
