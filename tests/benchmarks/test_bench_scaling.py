"""The scaling benchmark measures what it says."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_scaling.py"


def test_a_sample_costs_memory_and_less_of_it_in_half_precision() -> None:
    result = subprocess.run([sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, check=True)
    single, half = json.loads(result.stdout.splitlines()[-1])
    assert (single["precision"], half["precision"]) == ("float32", "bfloat16")
    assert 0.3 < half["sample_gb"] < single["sample_gb"] < 1.5
    # By hand, in MACs of a step: three convolutions of the stem, position, eight blocks; the first convolution once.
    stem = 9 * (48 * 96 * 112**2 + 96 * 192 * 56**2 + 192 * 384 * 28**2) + 9 * 384 * 384 * 14**2
    blocks = 8 * (12 * 384 * 384 * 196 + 2 * 196 * 384 * 48)
    expected = 4 * (stem + blocks) + 384 * 1000 * 4 + 9 * 3 * 48 * 224**2
    assert abs(single["gmacs_forward"] - expected / 1e9) < 1e-6
