"""Devices: wrong numbers are said, and every precision takes a step on a CPU."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.mistakes import field_error

from spikformer.data import DataSet, open_dataset
from spikformer.training import Epoch, Trainer, build_fabric, get_recipe
from spikformer.training.distributed import is_lost_peer, was_restarted
from spikformer.training.state import load_state


@pytest.fixture
def no_gpu(monkeypatch) -> None:
    """As on a machine without one."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


def test_wrong_numbers() -> None:
    with field_error("devices", 0):
        build_fabric(devices=0)
    with field_error("devices", -2):
        build_fabric(devices=-2)
    with field_error("nodes", 0):
        build_fabric(nodes=0)


@pytest.mark.usefixtures("no_gpu")
def test_a_gpu_that_is_not_there() -> None:
    with field_error("accelerator"):
        build_fabric(accelerator="gpu")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_one_process_on_the_cpu() -> None:
    fabric = build_fabric()
    assert (fabric.world_size, fabric.global_rank, fabric.device.type) == (1, 0, "cpu")
    assert fabric.is_global_zero


def test_torchrun_tells_of_a_restart(monkeypatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    assert not was_restarted()
    for count, restarted in (("0", False), ("1", True), ("3", True)):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
        assert was_restarted() is restarted


@pytest.fixture(scope="module")
def few() -> DataSet:
    """Two batches of eight: float16 is slow on a CPU."""
    data = open_dataset("digits")
    return replace(data, train=data.train.take(np.arange(16)), validation=None)


def start(precision: str, data: DataSet, state_path: Path | None = None) -> Trainer:
    recipe = replace(get_recipe("spikformer_tiny_digits"), epochs=1, batch_size=8, precision=precision)
    fabric = build_fabric(recipe.precision, accelerator="cpu", devices=1)
    return Trainer(recipe, data, fabric, state_path=state_path)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_every_precision_takes_its_steps_and_keeps_float32_weights(precision: str, few: DataSet) -> None:
    trainer = start(precision, few)
    trainer.start()
    before = trainer.model.head.weight.detach().clone()
    seen: list[torch.dtype] = []
    trainer.model.stem.stages[1].conv.register_forward_hook(lambda _m, _i, output: seen.append(output.dtype))
    *steps, epoch = trainer.run()
    assert isinstance(epoch, Epoch)
    assert len(steps) == 2
    assert seen[0] is getattr(torch, precision), "products are in the precision that was asked for"
    assert {parameter.dtype for parameter in trainer.model.parameters()} == {torch.float32}
    assert not torch.equal(trainer.model.head.weight, before)
    assert all(torch.isfinite(tensor).all() for tensor in trainer.model.state_dict().values())


def test_membranes_stay_in_float32(few: DataSet) -> None:
    trainer = start("float16", few)
    trainer.start()
    voltages: list[torch.dtype] = []
    trainer.model.blocks[0].attention.neuron.register_forward_hook(lambda _m, _i, out: voltages.append(out[1].dtype))
    next(trainer.run())
    assert voltages == [torch.float32]


def test_float16_scales_its_loss_and_remembers_by_how_much(few: DataSet, tmp_path: Path) -> None:
    trainer = start("float16", few, tmp_path / "state.safetensors")
    trainer.start()
    trainer._scaler.load_state_dict(trainer._scaler.state_dict() | {"scale": 512.0})
    list(trainer.run())
    saved = load_state(tmp_path / "state.safetensors")
    assert saved.scaler is not None
    assert saved.scaler["scale"] == trainer._scaler.get_scale()
    again = start("float16", few)
    again.start(saved)
    assert again._scaler.get_scale() == trainer._scaler.get_scale() != 65536.0


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_others_need_no_scaler(precision: str, few: DataSet, tmp_path: Path) -> None:
    trainer = start(precision, few, tmp_path / "state.safetensors")
    trainer.start()
    trainer.save()
    assert load_state(tmp_path / "state.safetensors").scaler is None


def test_the_users_number_of_threads_is_kept() -> None:
    code = "import torch; from spikformer.training import build_fabric; build_fabric(accelerator='cpu'); "
    code += "print(torch.get_num_threads())"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


def raised_by(act: Callable[[], object]) -> RuntimeError:
    with pytest.raises(RuntimeError) as caught:
        act()
    return caught.value


class Broken(torch.autograd.Function):
    """An error of our own in a backward pass."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("gloo NCCL")


def of_our_own() -> None:
    raise RuntimeError("gloo: Connection closed by peer")


def test_a_lost_peer_is_known_by_type_or_place_and_not_by_text() -> None:
    for kind in (torch.distributed.DistBackendError, torch.distributed.DistNetworkError):
        assert is_lost_peer(kind("anything"))
    assert not is_lost_peer(raised_by(of_our_own))
    assert not is_lost_peer(raised_by(lambda: Broken.apply(torch.ones(2, requires_grad=True)).sum().backward()))
    assert not is_lost_peer(raised_by(lambda: torch.zeros(2) @ torch.zeros(3)))
    assert not is_lost_peer(torch.OutOfMemoryError("gloo"))
    assert not is_lost_peer(RuntimeError("gloo"))


DIES = """
import os, sys, torch, torch.distributed as dist
from spikformer.training.distributed import is_lost_peer
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3))
net(torch.ones(1, 3)).sum().backward()
if rank == 1:
    os._exit(0)
acts = {"sum": lambda: dist.all_reduce(torch.ones(3)), "barrier": dist.barrier}
acts["forward and backward"] = lambda: net(torch.ones(1, 3)).sum().backward()
try:
    while True:
        acts[sys.argv[3]]()
except RuntimeError as error:
    os._exit(7 if is_lost_peer(error) else 8)
"""


@pytest.mark.parametrize("act", ["sum", "barrier", "forward and backward"])
def test_a_process_whose_peer_died_knows_it(act: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", DIES]
    processes = [subprocess.Popen([*words, str(rank), str(tmp_path / "store"), act]) for rank in (0, 1)]
    try:
        assert [process.wait(timeout=120) for process in processes] == [7, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
