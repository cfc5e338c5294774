"""`spikformer anytime`: a table, a picture and a stored confidence, which `predict` then uses."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.mistakes import shows

import spikformer as sf

FEW = ("--max-samples", 6, "--threads", 1)


@pytest.mark.slow
def test_what_is_measured_is_drawn_and_stored(weights: Path, tmp_path: Path, run_here) -> None:
    before = sf.load(weights)
    found = json.loads(run_here("anytime", weights.parent, *FEW, "--store", "--json").stdout)
    assert found["num_samples"] == 6
    assert found["all_steps"]["point"]["leaving"] == [0, 0, 0, 1]
    with Image.open(found["figure"]) as picture:
        assert picture.format == "PNG"
    assert Path(found["figure"]) == weights.parent / "best_anytime.png"
    assert found["stored"] == str(weights)
    after = sf.load(weights)
    assert after.card.confidence == found["confidence"] is not None
    x = np.random.default_rng(0).standard_normal((2, 1, 8, 8), dtype=np.float32)
    np.testing.assert_array_equal(sf.compile_engine(after, 1)(x), sf.compile_engine(before, 1)(x))

    seven = tmp_path / "seven.png"
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) * 4).save(seven)
    (answer,) = json.loads(run_here("predict", weights, seven, "--confidence", "card", "--json").stdout)
    (same,) = json.loads(run_here("predict", weights, seven, "--confidence", found["confidence"], "--json").stdout)
    assert answer == same
    assert 1 <= answer["steps"] <= 4


@pytest.mark.slow
def test_a_table_of_an_event_network(event_weights: Path, tmp_path: Path, run_here) -> None:
    output = tmp_path / "mine.svg"
    text = run_here("anytime", event_weights, *FEW, "--output", output).stdout
    rows = [line for line in text.splitlines() if line.startswith(("0.", "all steps"))]
    assert len(rows) >= 7
    assert text.count("←") == 1
    assert shows(text, output)
    assert output.is_file()
    assert list(event_weights.parent.iterdir()) == [event_weights]
    assert sf.load(event_weights).card.confidence is None, "nobody asked to store it"


def test_mistakes_leave_nothing(
    weights: Path, tmp_path: Path, write_weights, error_message: Callable[..., str]
) -> None:
    once = write_weights(tmp_path / "once.safetensors", time_steps=1)
    before = sorted(tmp_path.rglob("*"))
    assert shows(error_message("anytime", weights, "--tolerance", -1), "--tolerance", 0, 1, "-1")
    assert shows(error_message("anytime", weights, "--max-samples", 0), "--max-samples", 1, 0)
    assert shows(error_message("anytime", weights, "--threads", 0), "--threads", 1, 0)
    assert shows(error_message("anytime", weights, "--output", tmp_path / "a.txt"), tmp_path / "a.txt", ".png")
    error_message("anytime", once)
    error_message("predict", weights, tmp_path / "a.png", "--confidence", "card")
    assert shows(error_message("predict", weights, "a.png", "--confidence", 2), "--confidence", 2)
    assert sorted(tmp_path.rglob("*")) == before


def test_shipped_networks_stay_as_they_are(
    weights: Path, monkeypatch: pytest.MonkeyPatch, error_message: Callable[..., str]
) -> None:
    monkeypatch.setattr("spikformer.weights.FOLDER", weights.parent)
    assert shows(error_message("anytime", "best", *FEW, "--store"), "best")
    assert list(weights.parent.iterdir()) == [weights]
