"""Two gloo processes: gradients and metrics of one, and a worker that dies is no loss."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from spikformer.models import load
from spikformer.models.registry import list_architectures

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
SCRIPT = Path(__file__).parent / "two_processes.py"


def start(processes: int, norms: str, folder: Path, *words: str) -> None:
    folder.mkdir()
    command = [BIN / "torchrun", "--standalone", f"--nproc-per-node={processes}", SCRIPT, norms, folder, *words]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=200)
    assert result.returncode == 0, result.stderr


def compute(processes: int, norms: str, folder: Path, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    start(processes, norms, folder, *words)
    return torch.load(folder / "tensors.pt"), json.loads((folder / "figures.json").read_text())


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return compute(1, "synced", tmp_path_factory.mktemp("single") / "one")


def test_two_processes_compute_what_one_does(single, tmp_path: Path) -> None:
    """In float64, with norms over both: the gradient of the first step, running statistics, losses, counts."""
    one, alone = single
    two, together = compute(2, "synced", tmp_path / "two")
    for name, gradient in one["gradients"].items():
        assert torch.allclose(two["gradients"][name], gradient, rtol=1e-9, atol=1e-12), name
    for name, buffer in one["buffers"].items():
        assert torch.allclose(two["buffers"][name], buffer, rtol=1e-6, atol=1e-9), name
    for name in ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy"):
        assert together["metrics"][name] == pytest.approx(alone["metrics"][name], rel=1e-6), name
    assert together["test"]["num_samples"] == alone["test"]["num_samples"] == 37
    assert together["test"]["confusion"] == alone["test"]["confusion"]


def test_two_processes_compute_what_one_does_with_tet_muon_and_accumulation(tmp_path: Path) -> None:
    """Norms see parts of 16 on each of two processes here, and of 32 on one: synced, they are the same samples."""
    (one, alone), (two, together) = (compute(count, "synced", tmp_path / str(count), "tet") for count in (1, 2))
    for name, gradient in one["gradients"].items():
        assert torch.allclose(two["gradients"][name], gradient, rtol=1e-9, atol=1e-12), name
    assert together["metrics"]["train_loss"] == pytest.approx(alone["metrics"]["train_loss"], rel=1e-3)


def test_two_processes_train_every_architecture_as_one_does(tmp_path: Path) -> None:
    """Membranes, stages, depthwise and strided convolutions, masks, joins: nothing sees more than its own samples."""
    (one, alone), (two, together) = (
        compute(count, "synced", tmp_path / str(count), "architectures") for count in (1, 2)
    )
    assert set(one) == set(two) >= {architecture.name for architecture in list_architectures()}
    for network, gradients in one.items():
        largest = max(gradient.abs().max() for gradient in gradients.values())
        for name, gradient in gradients.items():
            assert (two[network][name] - gradient).abs().max() < 1e-9 * largest, (network, name)
        assert together[network]["train_loss"] == pytest.approx(alone[network]["train_loss"], rel=1e-3), network
        assert together[network]["num_tested"] == alone[network]["num_tested"] == 37


def test_norms_on_their_own_give_another_gradient(single, tmp_path: Path) -> None:
    """So the agreement above is the synced norms' doing."""
    one, _ = single
    two, _ = compute(2, "separate", tmp_path / "two")
    name = "stem.stages.0.conv.weight"
    assert not torch.allclose(two["gradients"][name], one["gradients"][name], rtol=1e-3)


def test_two_processes_stopped_by_one_go_on_to_the_same_figures(tmp_path: Path) -> None:
    whole, figures = compute(2, "separate", tmp_path / "whole")
    stopped, resumed = compute(2, "separate", tmp_path / "stopped", "stopped")
    for name in ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "unreadable"):
        assert resumed["metrics"][name] == figures["metrics"][name], name
    assert resumed["test"] == figures["test"]
    assert all(torch.equal(stopped["buffers"][name], buffer) for name, buffer in whole["buffers"].items())


def test_a_norm_that_is_ruined_on_one_process_ends_both(tmp_path: Path) -> None:
    start(2, "separate", tmp_path / "two", "diverged")
    assert sorted(file.name for file in (tmp_path / "two").glob("diverged_*")) == ["diverged_0", "diverged_1"]


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


def test_a_worker_that_dies_under_torchrun_is_started_again_and_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [BIN / "torchrun", "--standalone", "--nproc-per-node=2", "--max-restarts=1", BIN / "spikformer", "train"]
    command += ["--epochs", "4", "--save-minutes", "0", "--json", "--output", run]
    output_path, errors_path = tmp_path / "output", tmp_path / "errors"
    with output_path.open("w") as output, errors_path.open("w") as errors:
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=errors, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (run / "last.safetensors").exists():
            assert process.poll() is None, errors_path.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(workers_of(process)[1], signal.SIGKILL)
        assert process.wait(timeout=200) == 0, errors_path.read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    output = output_path.read_text()
    results = json.loads(re.findall(r"^\{.*\}$", output, re.MULTILINE)[-1])
    assert results["last"]["epoch"] == 4
    assert (run / "metrics.csv").read_text().count("\n") == 5
    assert load(run / "last.safetensors").card.settings["epochs"] == 4


def test_the_command_launches_its_own_processes(tmp_path: Path) -> None:
    command = [BIN / "spikformer", "train", "--epochs", "1", "--devices", "2", "--accelerator", "cpu", "--json"]
    command += ["--output", tmp_path / "run"]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=200)
    assert result.returncode == 0, result.stderr
    assert len(re.findall(r'"test_accuracy"', result.stdout)) == 2, "last and best, from one process alone"
