"""Shared by all tests: one thread for small networks, and a fresh seed for each test, whatever their order."""

import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Nothing of the user's is read or written; every worker has a folder of its own, which the system removes.
os.environ["SPIKFORMER_CACHE"] = tempfile.mkdtemp(prefix="spikformer-tests-")
# With AMX, some builds of oneDNN use its registers before they shaped them, and fault; bfloat16 takes AVX-512 instead.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# For the processes that tests start: on a busy machine two threads of a small network mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@contextmanager
def _full_disk(most_bytes: int = 1000) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def full_disk() -> Callable[..., AbstractContextManager[None]]:
    """A context in which no file may have more than a kilobyte, or as many bytes as given."""
    return _full_disk
