"""The data benchmark runs every stage and reports each once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_data.py"


def test_every_stage_has_a_rate() -> None:
    command = [sys.executable, "-W", "error", str(SCRIPT), "--quick"]
    *table, line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rates = json.loads(line)
    assert len(rates) == len(table) - 1
    assert all(rate > 0 for rate in rates.values())
    decoded = {what: rate for what, rate in rates.items() if what.startswith("decode")}
    assert len(decoded) == 5
    assert min(decoded.values()) > 5e6, "goal 10 M events/s; half of it on a busy machine"
