"""The benchmark of several architectures tells both sides, what products read, and how far answers agree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import spikformer as sf
from spikformer.analysis.architectures import sized_like
from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.presets import get_preset

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_family.py"


def save_specimen(name: str, folder: Path) -> Path:
    """An architecture's network at the size of Spikformer's on digits."""
    model = specimen(sized_like(get_preset("spikformer_tiny_digits").config)[name], torch.float32)
    model.card = open_dataset("digits").card(name)
    folder.mkdir()
    sf.save(model, folder / "last.safetensors")
    return folder / "last.safetensors"


def test_it_measures_networks_of_several_architectures(tmp_path: Path) -> None:
    names = ("spikformer", "spike_driven_transformer", "maxformer")
    weights = [save_specimen(name, tmp_path / name) for name in names]
    words = [sys.executable, SCRIPT, *weights, "--seconds", "0.05", "--threads", "1", "--images", "100"]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 0, result.stderr
    *table, line = result.stdout.splitlines()
    networks = json.loads(line)["networks"]
    assert tuple(each["name"] for each in networks) == names
    shares = [each["binary_share"] for each in networks]
    assert shares[0] < 0.9 < min(shares[1:]) <= max(shares) < 1, "the first convolution reads pixels"
    for each in networks:
        assert {"stem", "qkv", "projection", "fc1", "fc2"} <= each["densities"].keys()
        assert all(0 < density <= 1 for density in each["densities"].values())
        assert 0 <= each["accuracy"] <= 1
        assert each["agreement"]["samples"] == 100
        assert each["agreement"]["same_answer"] > 0.97
        assert each["agreement"]["spikes_different"] < 1e-3
        for side in ("eager", "engine"):
            assert all(each["speeds"][side][size]["calls"] >= 5 for size in ("1", "32"))
    assert sum(row.startswith("| maxformer | 4 |") for row in table) == 2
