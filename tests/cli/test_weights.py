"""Weights and data that do not fit together are rejected, by every verb that reads both, with nothing left behind."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.mistakes import file_error, mistake, shows

import spikformer as sf
from spikformer.data import open_dataset
from spikformer.engine.engine import Engine
from spikformer.engine.program import Compiled
from spikformer.runs.trained import load_answering, load_trained, open_data

VERBS = [
    ("evaluate",),
    ("anytime",),
    ("energy",),
    ("firing",),
    ("attention",),
    ("figure", "products"),
    ("figure", "raster"),
    ("figure", "events"),
]


def write(path: Path, card: sf.ModelCard, **overrides: Any) -> Path:
    sf.save(sf.create_model("spikformer_tiny_digits", **overrides), path, card)
    return path


def bad_weights(folder: Path) -> list[tuple[Path, tuple[object, ...]]]:
    """Weights, and what their errors show."""
    digits = open_dataset("digits").card("spikformer")
    (folder / "broken.safetensors").write_bytes(b"no weights")
    contents: dict[str, tuple[sf.ModelCard, dict[str, Any], tuple[object, ...]]] = {
        "data": (sf.ModelCard(architecture="spikformer"), {}, (folder / "data.safetensors",)),
        "classes": (replace(digits, class_names=tuple("abcdefghij")), {}, (10,)),
        "channels": (replace(digits, preprocessing=None), {"in_channels": 3}, (1, 3)),
        "name": (replace(digits, data_set="digit"), {}, ("'digit'", "'digits'")),
    }
    written = [
        (write(folder / f"{name}.safetensors", card, **overrides), shown)
        for name, (card, overrides, shown) in contents.items()
    ]
    return written + [(folder / name, (folder / name,)) for name in ("nowhere.safetensors", "broken.safetensors")]


@pytest.mark.parametrize("words", VERBS, ids="-".join)
def test_each_gets_an_error_message(
    words: tuple[str, ...], tmp_path: Path, error_message: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = bad_weights(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for path, shown in bad:
        assert shows(error_message(*words, path), *shown)
    assert sorted(tmp_path.iterdir()) == before


def test_those_that_fit_are_opened_in_the_models_form(tmp_path: Path, write_weights: Callable[..., Path]) -> None:
    model, data = "spikformer_tiny_digits_dvs", "digits_dvs"
    path = write_weights(tmp_path / "weights.safetensors", model, data, time_steps=5)
    loaded = load_trained(path)
    data = open_data(loaded, None)
    assert data.preprocessing == loaded.card.preprocessing
    assert data.test[0].shape == (5, 2, 16, 16)


def test_a_program_without_a_config_raises(tmp_path: Path) -> None:
    engine = sf.compile_engine(sf.create_model("spikformer_tiny_digits").eval(), num_threads=1)
    Engine(Compiled(engine.program, card=open_dataset("digits").card("program")), 1).save(tmp_path / "alone.engine")
    with file_error(tmp_path / "alone.engine", "unfit"):
        load_answering(tmp_path / "alone.engine")


def test_folders_keep_the_order_of_classes_that_weights_know(tmp_path: Path) -> None:
    for name in ("ant", "bee"):
        for split in ("train", "test"):
            (tmp_path / split / name).mkdir(parents=True)
            for number in range(2):
                Image.new("L", (8, 8), 9 * number).save(tmp_path / split / name / f"{number}.png")
    card = replace(open_dataset("image_folder", tmp_path, size=(8, 8)).card("spikformer"), class_names=("bee", "ant"))
    model = load_trained(write(tmp_path / "weights.safetensors", card, num_classes=2, in_channels=3))
    data = open_data(model, tmp_path)
    assert data.class_names == ("bee", "ant")
    assert [Path(data.test.source(place)).parent.name for place in np.flatnonzero(data.test.labels == 0)] == ["bee"] * 2
    (tmp_path / "test" / "bee").rename(tmp_path / "test" / "cat")
    with mistake(ValueError, "cat"):
        open_data(model, tmp_path)
