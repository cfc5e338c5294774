"""Small sets and trainers on one CPU process."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spikformer.data import DataSet, open_dataset
from spikformer.data.splits import Subset
from spikformer.models import SpikingNetwork
from spikformer.training import Recipe, Trainer, build_fabric, get_recipe


@pytest.fixture(scope="session")
def fabric():
    return build_fabric(accelerator="cpu", devices=1)


@pytest.fixture(scope="session")
def digits() -> DataSet:
    """128 digits to train on, 40 to validate and to test."""
    data = open_dataset("digits")

    def first(samples: Subset, count: int) -> Subset:
        return samples.take(np.arange(count))

    return replace(data, train=first(data.train, 128), validation=first(data.validation, 40), test=first(data.test, 40))


@pytest.fixture(scope="session")
def make_trainer(fabric, digits: DataSet) -> Callable[..., Trainer]:
    """A trainer on those digits, not started; settings override the digits recipe."""

    def make(
        data: DataSet = digits,
        state_path: Path | None = None,
        save_seconds: float = 1e9,
        strict: bool = False,
        teacher: SpikingNetwork | None = None,
        **settings,
    ) -> Trainer:
        recipe: Recipe = replace(get_recipe("spikformer_tiny_digits"), **{"epochs": 2, **settings})
        model = recipe.model.override(num_classes=len(data.class_names), in_channels=data.channels)
        recipe = replace(recipe, model=model)
        kept = {"state_path": state_path, "save_seconds": save_seconds}
        return Trainer(recipe, data, fabric, teacher=teacher, strict=strict, **kept)

    return make


@pytest.fixture
def photographs(tmp_path: Path) -> DataSet:
    """Dark cats and bright dogs; one cat of each split is damaged."""
    for split, count in (("train", 16), ("test", 4)):
        for name, brightness in (("cat", 40), ("dog", 200)):
            os.makedirs(tmp_path / "photographs" / split / name)
            for number in range(count):
                path = tmp_path / "photographs" / split / name / f"{number}.jpg"
                Image.new("RGB", (12, 12), (brightness + number, brightness, 0)).save(path)
        path = tmp_path / "photographs" / split / "cat" / "3.jpg"
        path.write_bytes(path.read_bytes()[:200])
    return open_dataset("image_folder", tmp_path / "photographs", size=(8, 8), validation_share=0)
