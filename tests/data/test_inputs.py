"""A single file in the form of the set that a model knows: the very sample that the set itself would give."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spikformer.data import open_dataset, read_sample


def photograph(path: Path, size: tuple[int, int] = (90, 60)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_a_photograph_of_a_folder(tmp_path: Path) -> None:
    path = photograph(tmp_path / "test" / "cat" / "1.png")
    data = open_dataset("image_folder", tmp_path, size=(32, 32))
    assert np.array_equal(read_sample(path, data.preprocessing), data.test[0])


def test_a_digit_is_gray(tmp_path: Path) -> None:
    data = open_dataset("digits")
    Image.fromarray(data.test[0][0]).save(tmp_path / "digit.png")
    sample = read_sample(tmp_path / "digit.png", data.preprocessing)
    assert np.array_equal(sample, data.test[0])


@pytest.mark.parametrize("name", ["event_folder", "cifar10dvs"])
def test_a_recording(name: str, tmp_path: Path, writers, some_rows) -> None:
    path = tmp_path / "test" / "airplane" / "1.aedat"
    path.parent.mkdir(parents=True)
    path.write_bytes(writers.formats["dvs128"].write(some_rows))
    if name == "cifar10dvs":
        for other in ("automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"):
            shutil.copytree(path.parent, path.parent.parent / other)
        data = open_dataset(name, tmp_path / "test", time_steps=2, size=(64, 64), cache_gb=0)
        expected = data.train[0]
    else:
        data = open_dataset(name, tmp_path, time_steps=2, size=(64, 64), cache_gb=0)
        expected = data.test[0]
    sample = read_sample(path, data.preprocessing)
    assert np.array_equal(sample, expected)
