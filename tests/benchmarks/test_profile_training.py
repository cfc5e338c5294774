"""The profile of training counts everything once, and data apart."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "profile_training.py"


def test_shares_add_up() -> None:
    command = [sys.executable, str(SCRIPT), "spikformer_tiny_digits", "--time-steps", "2", "--threads", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    row = json.loads(result.stdout.splitlines()[-1])
    assert sum(row["shares"].values()) == pytest.approx(1)
    assert {"neurons", "convolutions", "norms", "optimiser", "pools"} <= row["shares"].keys()
    assert 0 < row["data_ms"] < row["iteration_ms"]
