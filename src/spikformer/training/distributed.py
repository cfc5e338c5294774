"""Devices and processes: lightning-fabric on one process, on several, or under torchrun, and its collectives."""

from __future__ import annotations

import gc
import logging
import os
import traceback
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed
from torch import Tensor

from spikformer.errors import FieldError
from spikformer.training.recipe import Precision
from spikformer.validation import Accelerator, check_at_least

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_CONNECTED = ("torch.distributed.", "torch.nn.parallel.distributed", "torch.autograd.graph")
_AUTOCAST: dict[str, Literal["bf16-mixed", "16-mixed"]] = {"bfloat16": "bf16-mixed", "float16": "16-mixed"}


def build_fabric(
    precision: Precision = "float32",
    *,
    accelerator: Accelerator = "auto",
    devices: int | None = None,
    nodes: int = 1,
) -> Fabric:
    """A launched Fabric: from here on, every process runs the rest of the program."""
    from lightning_fabric import Fabric

    check_at_least("devices", devices, 1)
    check_at_least("nodes", nodes, 1)
    gpus = torch.cuda.device_count()
    on_gpu = choose_device(accelerator).type == "cuda"
    if on_gpu and devices is not None and devices > gpus:
        raise FieldError("devices", f"devices must be at most the number of GPUs, got {devices} of {gpus}.")
    number = devices or (gpus if on_gpu else 1)
    if "LOCAL_WORLD_SIZE" in os.environ:  # started by torchrun
        number, nodes = _torchrun_processes(devices, nodes)
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
            _join_after_restart("nccl" if on_gpu else "gloo")
        fabric.launch()
    return fabric


def choose_device(accelerator: Accelerator) -> torch.device:
    """The requested kind of device; auto is a GPU if there is one."""
    gpus = torch.cuda.device_count()
    if accelerator == "gpu" and not gpus:
        raise FieldError("accelerator", "PyTorch finds no GPU on this machine; use --accelerator cpu.")
    return torch.device("cuda" if gpus and accelerator != "cpu" else "cpu")


def was_restarted() -> bool:
    """Whether torchrun started this process in place of one that died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def _join_after_restart(backend: str) -> None:
    """Form the process group under a key prefix of this restart.

    torchrun keeps its store across restarts and PyTorch 2.13 reads it without a prefix, so processes may be sent to
    the addresses of dead ones. Fabric uses a group that exists already.
    """
    dist = torch.distributed
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or dist.is_initialized():
        return
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    name = f"restart_{os.environ['TORCHELASTIC_RESTART_COUNT']}"
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend, store=dist.PrefixStore(name, store), rank=rank, world_size=world_size)


def launch_id() -> str | None:
    """Torchrun's id of this command, the same after every restart; None without torchrun."""
    return os.environ.get("TORCHELASTIC_RUN_ID")


def _torchrun_processes(devices: int | None, nodes: int) -> tuple[int, int]:
    """Processes per machine, and machines. Raises where options contradict torchrun."""
    number = int(os.environ["LOCAL_WORLD_SIZE"])
    machines = int(os.environ["WORLD_SIZE"]) // number
    if devices not in (None, number) or nodes not in (1, machines):
        raise FieldError(
            "devices",
            f"torchrun started {number} processes on each of {machines} machines, got --devices {devices} and --nodes "
            f"{nodes}; leave both out.",
        )
    return number, machines


def _precision_plugin(precision: Precision, device: str) -> Any:
    """Autocast for products; a loss scaler for float16, which cannot hold small gradients."""
    from lightning_fabric.plugins.precision import MixedPrecision, Precision

    if precision == "float32":
        return Precision()
    scaler = torch.amp.GradScaler(device) if precision == "float16" else None
    return MixedPrecision(_AUTOCAST[precision], device, scaler=scaler)


def any_rank(fabric: Fabric, *flags: bool) -> list[bool]:
    """Each flag, set if any process sets it. Every process must call this at the same iteration."""
    return [count > 0 for count in sum_over_ranks(fabric, [float(flag) for flag in flags])]


def is_lost_peer(error: RuntimeError) -> bool:
    """Whether an error of several processes comes from the connection between them, as when one of them died.

    NCCL and the store have types of their own. gloo raises a bare RuntimeError: inside torch.distributed, inside DDP,
    or inside the backward pass, where DDP adds up gradients.
    """
    if isinstance(error, torch.distributed.DistError):
        return True
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised_in = str(frames[-1].f_globals.get("__name__")) if frames else ""
    return type(error) is RuntimeError and raised_in.startswith(_CONNECTED)


def sum_over_ranks(fabric: Fabric, values: Sequence[float]) -> list[float]:
    """Sums over all processes."""
    if fabric.world_size == 1:
        return list(values)
    sums = torch.tensor(values, dtype=torch.float64, device=fabric.device)
    torch.distributed.all_reduce(sums)
    return sums.tolist()


def broadcast_from_rank0(fabric: Fabric, tensors: Iterable[Tensor]) -> None:
    """Overwrite tensors with those of rank 0."""
    if fabric.world_size > 1:
        for tensor in tensors:
            torch.distributed.broadcast(tensor, 0)


def shut_down() -> None:
    """Destroy the process group, after everything that used it is gone.

    Its threads must not outlive the interpreter: one that needs the GIL during shutdown aborts the process, and a
    successful run would count as failed.
    """
    if torch.distributed.is_initialized():
        gc.collect()  # wrappers of the network hold the group, in reference cycles
        torch.distributed.destroy_process_group()
        gc.collect()
