"""Surrogate gradients: what stands in for the derivative of Θ, which is zero wherever it exists."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from spikformer.vocabulary import Surrogate


def sigmoid_gradient(x: Tensor, alpha: float) -> Tensor:
    """α σ(αx)(1 − σ(αx)): the paper's choice, with α = 4."""
    sigmoid = torch.sigmoid(alpha * x)
    return alpha * sigmoid * (1 - sigmoid)


def arctan_gradient(x: Tensor, alpha: float) -> Tensor:
    """(α/2) / (1 + (π/2 · αx)²): heavier tails than the sigmoid's, so distant neurons still learn."""
    return alpha / 2 / (1 + (math.pi / 2 * alpha * x) ** 2)


_GRADIENTS = {"sigmoid": sigmoid_gradient, "arctan": arctan_gradient}


def surrogate_gradient(surrogate: Surrogate, x: Tensor, alpha: float) -> Tensor:
    return _GRADIENTS[surrogate](x, alpha)


class _Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, surrogate: Surrogate, alpha: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.surrogate, ctx.alpha = surrogate, alpha
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        return grads[0] * surrogate_gradient(ctx.surrogate, x, ctx.alpha), None, None


def spike(x: Tensor, surrogate: Surrogate = "sigmoid", alpha: float = 4.0) -> Tensor:
    """Θ(x), with Θ(0) = 1, whose backward pass uses the surrogate."""
    return _Spike.apply(x, surrogate, alpha)
