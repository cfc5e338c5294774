"""A network that never fires: every verb that answers says so, and none names a class."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

import spikformer as sf
from spikformer.data import open_dataset
from spikformer.errors import SILENT

HIGH = {"v_threshold": 1000.0, "attention_v_threshold": 1000.0}


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    model = sf.create_model("spikformer_tiny_digits", depth=1, embed_dim=16, **HIGH)
    model.card = open_dataset("digits").card("spikformer")
    sf.save(model, tmp_path / "silent.safetensors")
    return tmp_path / "silent.safetensors"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.fromarray(open_dataset("digits").test[0][0]).save(tmp_path / "digit.png")
    return tmp_path / "digit.png"


def test_evaluate(silent: Path, weights: Path, run_here) -> None:
    assert SILENT in run_here("evaluate", silent).stdout
    assert json.loads(run_here("evaluate", silent, "--json").stdout)["silent"]
    assert SILENT not in run_here("evaluate", weights).stdout


@pytest.mark.slow
def test_anytime(silent: Path, run_here) -> None:
    text = run_here("anytime", silent, "--max-samples", 4, "--threads", 1).stdout
    assert SILENT in text


def test_predict_names_no_class(silent: Path, weights: Path, picture: Path, run_here) -> None:
    run_here("compile", silent)
    for path in (silent, silent.with_suffix(".engine")):
        text = run_here("predict", path, picture).stdout
        assert SILENT in text
        assert "%" not in text
        (answer,) = json.loads(run_here("predict", path, picture, "--json").stdout)
        assert answer == {"file": str(picture), "silent": True, "classes": []}
    assert SILENT not in run_here("predict", weights, picture).stdout


def test_one_silent_answer_is_not_a_silent_network(weights: Path, picture: Path, tmp_path: Path, run_here) -> None:
    model = sf.load(weights)
    for module in model.modules():
        if hasattr(module, "running_mean"):
            torch.nn.init.zeros_(module.running_mean)
            torch.nn.init.zeros_(module.bias)
    for layer in (module for module in model.modules() if isinstance(module, torch.nn.Linear)):
        torch.nn.init.zeros_(layer.bias)
    sf.save(model, weights, replace(model.card, preprocessing=replace(model.card.preprocessing, mean=None, std=None)))
    Image.new("L", (8, 8), 0).save(tmp_path / "black.png")
    said = run_here("predict", weights, picture, tmp_path / "black.png")
    assert SILENT not in said.stdout
    assert "1 of 2 files" in said.stdout


def test_attention(silent: Path, picture: Path, tmp_path: Path, run_here) -> None:
    words = ("attention", silent, "--files", picture, "--output", tmp_path / "maps.png")
    text = run_here(*words).stdout
    assert SILENT in text
    assert "%" not in text
    assert json.loads(run_here(*words, "--json").stdout)[0]["answer"] is None


def test_train_and_report(tmp_path: Path, run_here) -> None:
    small = ("--epochs", 1, "--model.depth", 1, "--model.embed-dim", 16, "--batch-size", 256)
    high = ("--model.v-threshold", 1000, "--model.attention-v-threshold", 1000)
    assert SILENT in run_here("train", *small, *high, "--output", tmp_path / "run").stdout
    lines = run_here("train", "--resume", "--output", tmp_path / "run", "--json").stdout.splitlines()
    assert json.loads(lines[-1])["silent"]
    assert SILENT in run_here("report", tmp_path / "run", "--samples", 1, "--max-samples", 8).stdout
    assert SILENT.split(";")[0] in (tmp_path / "run" / "report.html").read_text()
