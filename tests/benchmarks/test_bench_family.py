"""The benchmark of several architectures tells both sides, what products read, and how far answers agree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.presets import get_preset

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_family.py"


def save_specimen(preset: str, architecture: str, folder: Path) -> Path:
    model = specimen(get_preset(preset).config, torch.float32)
    model.card = open_dataset("digits").card(architecture)
    folder.mkdir()
    sf.save(model, folder / "last.safetensors")
    return folder / "last.safetensors"


def test_it_measures_networks_of_several_architectures(tmp_path: Path) -> None:
    weights = [
        save_specimen("spikformer_tiny_digits", "spikformer", tmp_path / "paper"),
        save_specimen("maxformer_tiny_digits", "maxformer", tmp_path / "binary"),
    ]
    words = [sys.executable, SCRIPT, *weights, "--seconds", "0.05", "--threads", "1", "--images", "100"]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 0, result.stderr
    *table, line = result.stdout.splitlines()
    paper, binary = json.loads(line)["networks"]
    assert (paper["name"], binary["name"]) == ("paper", "binary")
    assert paper["binary_share"] < 0.9 < binary["binary_share"] < 1, "only Max-Former's first convolution reads floats"
    for each in (paper, binary):
        assert {"stem", "qkv", "projection", "fc1", "fc2"} <= each["densities"].keys()
        assert all(0 < density <= 1 for density in each["densities"].values())
        assert 0 <= each["accuracy"] <= 1
        assert each["agreement"]["samples"] == 100
        assert each["agreement"]["same_answer"] > 0.97
        assert each["agreement"]["spikes_different"] < 1e-3
        for side in ("eager", "engine"):
            assert all(each["speeds"][side][size]["calls"] >= 5 for size in ("1", "32"))
    assert sum(row.startswith("| paper | 4 |") for row in table) == 2
