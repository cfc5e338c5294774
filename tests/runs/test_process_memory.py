"""Freed memory stays in the process: after a few rounds of the same work, its large tensors bring few page faults."""

import subprocess
import sys

import pytest

CODE = """
import resource, sys, torch
from spikformer.runs.process import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()

def work():
    for size in (20_000_000, 12_000_000, 15_000_000):
        torch.ones(size).mul(2).add(1)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(10):
    work()
before = faults()
for _ in range(5):
    work()
print(faults() - before)
"""


def faults(mode: str) -> int:
    return int(subprocess.run([sys.executable, "-c", CODE, mode], capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_large_tensors_are_reused() -> None:
    assert faults("keep") * 4 < faults("return")
