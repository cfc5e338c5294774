"""The scaling benchmark measures what it says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_scaling.py"


def test_a_sample_costs_memory_and_less_of_it_in_half_precision() -> None:
    result = subprocess.run([sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, check=True)
    single, half = json.loads(result.stdout.splitlines()[-1])
    assert (single["precision"], half["precision"]) == ("float32", "bfloat16")
    assert 0.04 < half["sample_gb"] < single["sample_gb"] < 0.4
    # By hand, in MACs of a step: three convolutions of the stem, position, four blocks; the first convolution once.
    stem = 9 * (48 * 96 * 32**2 + 96 * 192 * 32**2 + 192 * 384 * 16**2) + 9 * 384 * 384 * 8**2
    blocks = 4 * (12 * 384 * 384 * 64 + 2 * 64 * 384 * 32)
    expected = 4 * (stem + blocks) + 384 * 10 * 4 + 9 * 3 * 48 * 32**2
    assert abs(single["gmacs_forward"] - expected / 1e9) < 1e-6
