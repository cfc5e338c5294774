"""The one place that picks what computes a neuron: the native core or plain PyTorch."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor
from torch.autograd import forward_ad

from spikformer.neurons import reference

native: ModuleType | None
try:
    from spikformer.neurons import native
except ImportError:  # installed on a machine without a compiler
    native = None


def describe() -> str:
    """Which of the two this installation has, for people."""
    if native is None:
        return "no native core: neurons run in plain PyTorch; install where there is a C++ compiler to have it"
    info = native.build_info()
    threads = f"OpenMP, {info['max_threads']} threads" if info["openmp"] else "one thread"
    return f"native core: {info['compiler']}, {threads}"


def is_observed() -> bool:
    """Whether PyTorch records or transforms operations instead of just running them, so that all must be its own.

    In torch.jit.trace, under a dispatch mode (make_fx, a FLOP counter), in torch.func and in forward-mode autograd.
    """
    if torch.compiler.is_compiling():  # sees through `reference`, and through its backward pass
        return False
    return (
        torch.jit.is_tracing()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.maybe_current_level() is not None
        or forward_ad._current_level >= 0
    )


def kernels_for(current: Tensor) -> ModuleType:
    """Native for float32 and float64 on a CPU; PyTorch elsewhere, and where a compiler wants to see the operations."""
    plain = type(current) in (torch.Tensor, torch.nn.Parameter)
    if (
        native is not None
        and plain
        and not torch.compiler.is_compiling()
        and not is_observed()
        and current.device.type == "cpu"
        and current.dtype in (torch.float32, torch.float64)
    ):
        return native
    return reference
