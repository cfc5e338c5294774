"""The benchmark measures what it says: one case, really run, in its own process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_model.py"


def test_one_case() -> None:
    command = [sys.executable, str(SCRIPT), "--case", "eval, batch 1", "--repeats", "1"]
    row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    # By hand, per step in MACs: four convolutions of the stem but the first, position, four blocks; the first once.
    stem = 9 * (48 * 96 * 1024 + 96 * 192 * 1024 + 192 * 384 * 256) + 9 * 384 * 384 * 64
    blocks = 4 * (12 * 384 * 384 * 64 + 2 * 64 * 384 * 32)
    expected = 4 * (stem + blocks + 384 * 10) + 9 * 3 * 48 * 1024
    assert row["gmacs_per_image"] == pytest.approx(expected / 1e9, rel=1e-9)
    assert row["images_per_second"] == pytest.approx(1e3 / row["latency_ms"])
    assert 0.01 < row["share_of_gemm"] < 1
    assert 0.2 < row["peak_memory_gb"] < 2
