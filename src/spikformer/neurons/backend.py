"""The one place that picks what computes a neuron: the native core or plain PyTorch."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

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


def kernels_for(current: Tensor) -> ModuleType:
    """Native for float32 and float64 on a CPU; PyTorch elsewhere, and where a compiler wants to see the operations."""
    plain = type(current) in (torch.Tensor, torch.nn.Parameter) and not torch.compiler.is_compiling()
    if (
        native is not None
        and plain
        and current.device.type == "cpu"
        and current.dtype in (torch.float32, torch.float64)
    ):
        return native
    return reference
