"""Batches for measuring: always the same samples, from all over a split, without those that cannot be read."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.cli.console import bar
from spikformer.data import open_dataset
from spikformer.presets import get_preset
from spikformer.runs.measure import batches


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Four cats and four dogs to test on, all of them different; a cat and a dog are damaged."""
    for split in ("train", "test"):
        for label, name in enumerate(("cat", "dog")):
            folder = tmp_path / "photographs" / split / name
            folder.mkdir(parents=True)
            for number in range(4):
                Image.new("RGB", (8, 8), (100 * label + 10 * number, 50, 0)).save(folder / f"{number}.png")
            if split == "test":
                (folder / "2.png").write_bytes(b"no picture")
    return tmp_path / "photographs"


@pytest.fixture
def trained(photographs: Path, tmp_path: Path) -> Path:
    config = get_preset("spikformer_tiny_digits").config.override(in_channels=3, num_classes=2)
    model = specimen(config, torch.float32)
    model.card = open_dataset("image_folder", photographs, size=(8, 8)).card("spikformer")
    sf.save(model, tmp_path / "best.safetensors")
    return tmp_path / "best.safetensors"


def test_samples_are_spread_over_a_split_and_always_the_same() -> None:
    model, data = sf.create_model("spikformer_tiny_digits"), open_dataset("digits")
    taken = list(batches(model, data, "test", 50, 16))
    assert [len(batch) for batch in taken] == [16, 16, 16, 2]
    everything = data.prepare(np.stack([data.test[index] for index in range(len(data.test))]))
    places = [int(torch.nonzero((everything == image).flatten(1).all(1))[0]) for image in torch.cat(taken)]
    assert places == sorted(set(places))
    assert min(places) < 30
    assert max(places) > 330
    again = torch.cat(list(batches(model, data, "test", 50, 7)))
    assert torch.equal(again, torch.cat(taken))
    whole = torch.cat(list(batches(model, data, "test", 10**9, 100)))
    assert torch.equal(whole, everything)


def test_they_are_as_the_model_wants_them() -> None:
    model = sf.create_model("spikformer_tiny_digits").double()
    (batch,) = batches(model, open_dataset("digits"), "validation", 3, 16)
    assert (batch.shape, batch.dtype) == ((3, 1, 8, 8), torch.float64)
    assert model.eval()(batch).shape == (3, 10)


@pytest.mark.parametrize("verb", ["energy", "firing"])
def test_what_cannot_be_read_is_left_out(verb: str, trained: Path, photographs: Path, run_here) -> None:
    words = (verb, trained, "--data", photographs, "--batch-size", 2, "--json")
    assert json.loads(run_here(*words).stdout)["num_samples"] == 6


def test_nothing_that_can_be_read(trained: Path, photographs: Path, error_message: Callable[..., str]) -> None:
    for path in (photographs / "test").rglob("*.png"):
        path.write_bytes(b"no picture")
    for verb in ("energy", "firing"):
        assert "samples" in error_message(verb, trained, "--data", photographs)
    assert list(trained.parent.glob("*.png")) == []


def test_a_bar_is_for_terminals(capsys) -> None:
    with bar("Measuring", 3, enabled=True) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")
