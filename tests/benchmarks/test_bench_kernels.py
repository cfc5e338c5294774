"""The microbenchmark measures every kernel there is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spikformer import _native

pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "bench_kernels.py"


def test_every_kernel_is_measured() -> None:
    found = subprocess.run(
        [sys.executable, BENCHMARK, "--quick"], capture_output=True, text=True, check=False, timeout=120
    )
    assert found.returncode == 0, found.stderr
    rows = json.loads(found.stdout.splitlines()[-1])
    measured = {row["kernel"].split(",")[0] for row in rows}
    others = {"name", "tile", "multiplies_integers", "pack"}
    assert measured == {name for name in vars(_native.Kernels) if not name.startswith("_")} - others
    assert all(len(row) >= 3 and min(list(row.values())[2:]) > 0 for row in rows)
    assert all("scalar" in row for row in rows if row["kernel"] not in ("integer_linear", "expand_bytes"))
    assert "| spike_linear | 64 rows" in found.stdout
