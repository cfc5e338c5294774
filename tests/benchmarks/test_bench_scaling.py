"""The scaling benchmark measures what it says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import spikformer as sf

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_scaling.py"


def saved_gigabytes(half: bool) -> float:
    """What autograd keeps of one sample, parameters aside."""
    model = sf.create_model("spikformer_4_384_cifar10")
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=half),
    ):
        loss = model(torch.randn(4, 3, 32, 32)).float().sum()
    loss.backward()
    return sum(kept.values()) / 4e9


def test_memory_and_operations_are_those_of_the_network() -> None:
    result = subprocess.run([sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, check=True)
    single, half = json.loads(result.stdout.splitlines()[-1])
    assert (single["precision"], half["precision"]) == ("float32", "bfloat16")
    # Not compared with each other: what oneDNN allocates beside the tensors is another on every processor.
    kept = {row["precision"]: saved_gigabytes(row["precision"] == "bfloat16") for row in (single, half)}
    assert 0.04 < kept["bfloat16"] < kept["float32"] < 0.2
    assert all(0.7 * kept[row["precision"]] < row["sample_gb"] < 3 * kept[row["precision"]] for row in (single, half))
    # By hand, in MACs of a step: three convolutions of the stem, position, four blocks; the first convolution once.
    stem = 9 * (48 * 96 * 32**2 + 96 * 192 * 32**2 + 192 * 384 * 16**2) + 9 * 384 * 384 * 8**2
    blocks = 4 * (12 * 384 * 384 * 64 + 2 * 64 * 384 * 32)
    expected = 4 * (stem + blocks) + 384 * 10 * 4 + 9 * 3 * 48 * 32**2
    assert abs(single["gmacs_forward"] - expected / 1e9) < 1e-6
