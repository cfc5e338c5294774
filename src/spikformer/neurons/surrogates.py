"""Surrogate gradients: what stands in for the derivative of Θ, which is zero wherever it exists."""

from __future__ import annotations

import math

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


def sigmoid(x: Tensor, alpha: float) -> Tensor:
    """A step of slope α/4 at zero, σ(αx), whose derivative is `sigmoid_gradient`."""
    return torch.sigmoid(alpha * x)


def arctan(x: Tensor, alpha: float) -> Tensor:
    """A step of slope α/2 at zero, atan(π/2 · αx)/π, whose derivative is `arctan_gradient`."""
    return torch.atan(math.pi / 2 * alpha * x) / math.pi


_SMOOTH = {"sigmoid": sigmoid, "arctan": arctan}


def spike(x: Tensor, surrogate: Surrogate = "sigmoid", alpha: float = 4.0) -> Tensor:
    """Θ(x), with Θ(0) = 1, whose derivatives of any order are those of a smooth step: its gradient is the surrogate.

    Made of PyTorch's own operations alone, so that torch.func, tracing and double backward see through it.
    """
    smooth = _SMOOTH[surrogate](x, alpha)
    return (x >= 0).to(x.dtype) + (smooth - smooth.detach())  # exactly zero is added
