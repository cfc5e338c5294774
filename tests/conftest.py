"""Shared by all tests: one thread for networks this small, and a fresh seed for each, so that order is nothing."""

import os
import tempfile

# Nothing of the user's is read or written; every worker has a folder of its own, which the system takes away.
os.environ["SPIKFORMER_CACHE"] = tempfile.mkdtemp(prefix="spikformer-tests-")
# Some virtual machines advertise AMX and fault on its first instruction; bfloat16 takes AVX-512 instead.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# For the processes that tests start: on a busy machine two threads of a small network mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
