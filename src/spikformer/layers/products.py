"""Sums of products whose float64 inference is batch-invariant to the last bit.

A BLAS library may split a long sum differently when rows are added to a matrix, so a sample's product can change in
its last bit with the batch it travels in. float64 is our dtype of proof: there, outside training, every sample is
multiplied on its own, and streaming, batched and multi-step results are equal, not close. Other dtypes pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def batch_invariant(function: Callable[..., Tensor], *samples: Tensor, training: bool) -> Tensor:
    """function(*samples) of tensors [B, …], in float64 inference one sample at a time."""
    if training or samples[0].dtype != torch.float64 or torch.jit.is_tracing():  # a trace is for any batch
        return function(*samples)
    alone = zip(*(x.split(1) for x in samples), strict=True)
    return torch.cat([function(*(x.clone() for x in sample)) for sample in alone])


class Linear(nn.Linear):
    """On samples [B, …, in_features]."""

    def forward(self, x: Tensor) -> Tensor:
        return batch_invariant(super().forward, x, training=self.training)


class Conv2d(nn.Conv2d):
    """On samples [B, in_channels, H, W]."""

    def forward(self, x: Tensor) -> Tensor:
        return batch_invariant(super().forward, x, training=self.training)
