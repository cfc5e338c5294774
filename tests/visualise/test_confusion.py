"""The confusion matrix as a picture."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spikformer.visualise.confusion import draw_confusion


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


def test_names_and_counts_must_agree(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="A confusion of 3 classes has as many rows and columns, got"):
        draw_confusion([[1, 0], [0, 1]], ["a", "b", "c"], tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())
