"""Coarser weights change more spikes."""

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

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "rounded_weights.py"


def test_it_tells_by_bits(tmp_path: Path) -> None:
    model = specimen(get_preset("spikformer_tiny_digits").config, torch.float32)
    model.card = open_dataset("digits").card("spikformer")
    sf.save(model, tmp_path / "digits.safetensors")
    words = [sys.executable, SCRIPT, tmp_path / "digits.safetensors", "--images", "40"]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    *table, line = result.stdout.splitlines()
    rows = json.loads(line)
    assert [row["bits"] for row in rows] == [16, 14, 12, 10, 8]
    assert rows[0]["spikes"] < rows[2]["spikes"] < rows[-1]["spikes"]
    assert table[-1].startswith(f"| 8 | {rows[-1]['spikes']:.1e} |")
