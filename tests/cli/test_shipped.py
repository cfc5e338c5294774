"""Shipped networks in the place of weights, and the commands that their cards name."""

import json
import shlex
from pathlib import Path

import pytest

import spikformer as sf
from spikformer.cli.train import parse
from spikformer.runs.shipping import ship
from spikformer.training import Recipe
from spikformer.weights import FOLDER


def files() -> list[Path]:
    return sorted(path for path in FOLDER.iterdir() if path.name != "__pycache__")


def test_what_verbs_make_of_them_is_written_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_here) -> None:
    monkeypatch.chdir(tmp_path)
    before = files()
    run_here("compile", "digits")
    assert sf.load_engine("digits.engine").card == sf.load("digits").card
    drawn = json.loads(run_here("evaluate", "digits", "--max-samples", 20, "--json").stdout)["figure"]
    assert (tmp_path / drawn).is_file()
    assert files() == before


def test_a_stored_confidence_needs_a_copy(error_message) -> None:
    before = files(), [path.read_bytes() for path in files() if path.suffix == ".safetensors"]
    assert "digits" in error_message("anytime", "digits", "--store")
    assert (files(), [path.read_bytes() for path in files() if path.suffix == ".safetensors"]) == before


def test_they_are_listed(run_here, error_message) -> None:
    rows = json.loads(run_here("models", "--weights", "--json").stdout)
    assert [row["name"] for row in rows] == sf.list_weights()
    assert "digits" in run_here("models", "dig*", "--weights").stdout
    assert "nowhere" in error_message("models", "nowhere", "--weights")


def test_the_command_on_a_card_has_the_settings_of_the_run(tmp_path: Path) -> None:
    run = sf.train(
        "spikformer_tiny_digits",
        output=tmp_path / "run",
        epochs=1,
        max_samples=100,
        batch_size=50,
        whiten=True,
        model={"depth": 1, "detach_reset": False},
        augmentation={"crop_scale": (0.8, 1.0)},
    )
    card = ship(run.last, tmp_path / "net.safetensors", licence="CC0-1.0", limits="A test.")
    command = next(result.command for result in card.results if result.metric == "training_seconds")
    words = shlex.split(command)
    assert words[:2] == ["spikformer", "train"]
    assert parse(words[2:]).options.settings.settings_unlike(Recipe.from_dict(card.settings)) == {}
