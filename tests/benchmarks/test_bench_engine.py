"""The engine's benchmark measures both sides, every layer and every density."""

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

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_engine.py"


def test_it_tells_both_sides(tmp_path: Path) -> None:
    model = specimen(get_preset("spikformer_tiny_digits").config, torch.float32)
    model.card = open_dataset("digits").card("spikformer")
    sf.save(model, tmp_path / "digits.safetensors")
    few = ["--quick", "--seconds", "0.05", "--threads", "1", "--images", "100"]
    words = [sys.executable, SCRIPT, tmp_path / "digits.safetensors", *few]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    *table, line = result.stdout.splitlines()
    found = json.loads(line)
    agreed = found["agreement"]
    assert agreed["samples"] == 100
    assert agreed["same_answer"] > 0.97
    assert agreed["spikes_different"] < 1e-3
    assert agreed["largest_difference_of_their_logits"] < 1e-5
    assert [contender["name"] for contender in found["contenders"]] == ["eager", "engine", "engine, events only"]
    for contender in found["contenders"]:
        assert contender["speeds"].keys() == {"1", "32"}
        assert all(speed["images_per_second"] > 0 and speed["calls"] >= 5 for speed in contender["speeds"].values())
    assert [row["layer"] for row in found["layers"]][:2] == ["stem.stages.0", "stem.stages.1"]
    assert all(row["events_ms"] > 0 and row["dense_ms"] > 0 for row in found["layers"])
    assert found["densities"][0]["four_steps_ms"] < found["densities"][-1]["four_steps_ms"]
    assert any(row.startswith("| engine | 32 |") for row in table)
