"""Devices: lightning-fabric set up for a recipe, on one process, on several, or under torchrun."""

from __future__ import annotations

import logging
import os
import warnings
from typing import TYPE_CHECKING, Any, Literal

import torch

from spikformer.training.recipe import Precision

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_AUTOCAST: dict[str, Literal["bf16-mixed", "16-mixed"]] = {"bfloat16": "bf16-mixed", "float16": "16-mixed"}


def build_fabric(
    precision: Precision = "float32",
    *,
    accelerator: Literal["auto", "cpu", "gpu"] = "auto",
    devices: int | None = None,
    nodes: int = 1,
) -> Fabric:
    """Processes as asked for, launched: from here on, each of them runs on its own."""
    from lightning_fabric import Fabric

    if devices is not None and devices < 1:
        raise ValueError(f"devices must be at least 1, got {devices}.")
    if nodes < 1:
        raise ValueError(f"nodes must be at least 1, got {nodes}.")
    gpus = torch.cuda.device_count()
    on_gpu = choose_device(accelerator).type == "cuda"
    if on_gpu and devices is not None and devices > gpus:
        raise ValueError(f"devices must be at most the number of GPUs, got {devices} of {gpus}.")
    number = devices or (gpus if on_gpu else 1)
    if "LOCAL_WORLD_SIZE" in os.environ:  # torchrun has decided
        number, nodes = _processes_of_torchrun(devices, nodes)
    options: dict[str, Any] = {"strategy": "ddp"} if number * nodes > 1 else {}
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    # A kernel of one channel has no definite layout; DDP notices, and copies a few bytes.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    with warnings.catch_warnings(action="ignore"):  # advice about workers and TF32 that is not ours to give
        fabric = Fabric(
            accelerator="gpu" if on_gpu else "cpu",
            devices=number,
            num_nodes=nodes,
            plugins=_precision_plugin(precision, "cuda" if on_gpu else "cpu"),
            **options,
        )
        if was_restarted():
            _join_anew("nccl" if on_gpu else "gloo")
        fabric.launch()
    return fabric


def choose_device(accelerator: Literal["auto", "cpu", "gpu"]) -> torch.device:
    """The kind of device that is asked for; auto is a GPU if there is one."""
    gpus = torch.cuda.device_count()
    if accelerator == "gpu" and not gpus:
        raise ValueError("There is no GPU that PyTorch can use here; take --accelerator cpu.")
    return torch.device("cuda" if gpus and accelerator != "cpu" else "cpu")


def was_restarted() -> bool:
    """Torchrun has started this process in the place of one that died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def _join_anew(backend: str) -> None:
    """Form the group of processes under a name of this start.

    Torchrun keeps its store over restarts and PyTorch 2.13 reads it without a prefix, so that processes may be sent
    to the addresses of dead ones. Fabric takes a group that is there already.
    """
    import torch.distributed as dist

    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or dist.is_initialized():
        return
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    name = f"restart_{os.environ['TORCHELASTIC_RESTART_COUNT']}"
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend, store=dist.PrefixStore(name, store), rank=rank, world_size=world_size)


def launch_id() -> str | None:
    """What torchrun calls all its starts of one command."""
    return os.environ.get("TORCHELASTIC_RUN_ID")


def _processes_of_torchrun(devices: int | None, nodes: int) -> tuple[int, int]:
    """On each machine, and the number of machines; options that say otherwise are refused."""
    number = int(os.environ["LOCAL_WORLD_SIZE"])
    machines = int(os.environ["WORLD_SIZE"]) // number
    if devices not in (None, number) or nodes not in (1, machines):
        raise ValueError(
            f"torchrun has started {number} processes on each of {machines} machines, got {devices} devices and "
            f"{nodes} nodes; leave both to torchrun."
        )
    return number, machines


def _precision_plugin(precision: Precision, device: str) -> Any:
    """Autocast for products; a loss scaler for float16, which cannot hold small gradients."""
    from lightning_fabric.plugins.precision import MixedPrecision, Precision

    if precision == "float32":
        return Precision()
    scaler = torch.amp.GradScaler(device) if precision == "float16" else None
    return MixedPrecision(_AUTOCAST[precision], device, scaler=scaler)
