"""The confusion matrix as a picture."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spikformer.visualise.confusion import confusion_figure, draw_confusion


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
    with pytest.raises(ValueError, match="A confusion of 3 classes has as many rows and columns, got"):
        draw_confusion([[1, 0], [0, 1]], ["a", "b", "c"], tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())
