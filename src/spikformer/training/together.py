"""What several processes must do at the same step, so that none waits for the others in vain; alone it is nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed
from torch import Tensor

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def any_of(fabric: Fabric, *wishes: bool) -> list[bool]:
    """What any process wants, all do."""
    return [wish > 0 for wish in total(fabric, [float(wish) for wish in wishes])]


def total(fabric: Fabric, values: Sequence[float]) -> list[float]:
    """Sums over all processes."""
    if fabric.world_size == 1:
        return list(values)
    shared = torch.tensor(values, dtype=torch.float64, device=fabric.device)
    torch.distributed.all_reduce(shared)
    return shared.tolist()


def take_from_first(fabric: Fabric, tensors: Iterable[Tensor]) -> None:
    """Overwrite tensors with those of the first process."""
    if fabric.world_size > 1:
        for tensor in tensors:
            torch.distributed.broadcast(tensor, 0)


def leave() -> None:
    """Close the connections to other processes, after everything that used them is gone.

    Their threads must not outlive the interpreter: one that asks for Python while it shuts down aborts the process, and
    a run that has ended well would count as failed.
    """
    if torch.distributed.is_initialized():
        gc.collect()  # modules that wrap the network hold connections, in circles
        torch.distributed.destroy_process_group()
        gc.collect()
