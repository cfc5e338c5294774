"""The benchmark measures what it says: both engines, really run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_page.py"


def test_a_small_network() -> None:
    command = [sys.executable, str(SCRIPT), "--model", "spikformer_tiny_digits", "--images", "20", "--rounds", "1"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(output.splitlines()[-1])
    assert found["model"] == "spikformer_tiny_digits"
    assert 0.01 < found["native_ms"] < found["page_ms"] < 1000
    assert found["first_paint_ms"] > 0
    assert found["page_bytes"] > 500_000
