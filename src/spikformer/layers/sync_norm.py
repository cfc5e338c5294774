"""Batch norm over the samples of several processes.

torch's own SyncBatchNorm needs GPUs, and counts neither the copies of a static image nor parts of unequal size. This
one is a few reductions that autograd sees through, on any backend of torch.distributed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn


class SyncedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """y = (x − μ)/√(σ² + ε)·γ + β with μ and σ² of all processes' samples [B, C, …]."""

    def forward(self, x: Tensor, repeats: int = 1) -> Tensor:
        """`repeats` is how many equal samples each one stands for: only the running variance sees them."""
        if not self.training and self.running_mean is not None:
            return super().forward(x)
        dtype, x = x.dtype, x.to(torch.promote_types(x.dtype, torch.float32))  # sums of halves would be coarse
        axes = [axis for axis in range(x.ndim) if axis != 1]
        shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
        count = _total(torch.tensor(float(x.numel() // x.shape[1]), device=x.device))
        mean = _total(x.sum(axes)) / count
        centred = x - mean.view(shape)
        variance = _total(centred.square().sum(axes)) / count
        self._remember(mean.detach(), variance.detach(), count * repeats)
        y = centred * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            y = y * self.weight.view(shape) + self.bias.view(shape)
        return y.to(dtype)

    def _remember(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Move the running statistics, if there are any: by momentum, or without one as a mean over all batches."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        momentum = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        unbiased = variance * count / (count - 1)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)

    def _check_input_dim(self, input: Tensor) -> None:
        """Any number of axes will do."""


class _Total(torch.autograd.Function):
    """Σ x over processes. All of them read the result, so the gradient of x is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone(memory_format=torch.contiguous_format)
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Total.forward(ctx, gradient)


def _total(x: Tensor) -> Tensor:
    return _Total.apply(x)


def sync_norms(model: nn.Module) -> None:
    """Replace every batch norm in a model by a synced one that shares its weights and buffers."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.BatchNorm1d | nn.BatchNorm2d):
                options = child.affine, child.track_running_stats
                synced = SyncedBatchNorm(child.num_features, child.eps, child.momentum, *options)
                synced.weight, synced.bias = child.weight, child.bias
                synced.running_mean, synced.running_var = child.running_mean, child.running_var
                synced.num_batches_tracked = child.num_batches_tracked
                setattr(module, name, synced.train(child.training))
