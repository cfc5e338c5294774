"""Losses of a network's readouts [T, B, K], and what calls the network so that it returns them.

Targets are shares of classes [B, K], as mixing and smoothing leave them, or labels [B].
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.models import SpikingNetwork
from spikformer.training.recipe import Recipe


def mean_logit_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of the mean readout [B, K]; in float32 at least."""
    return F.cross_entropy(_at_least_float32(logits), targets)


def tet_loss(readouts: Tensor, targets: Tensor, weight: float = 1e-3) -> Tensor:
    """(1 − λ)·mean over steps of CE(readout_t, y) + λ·mean of (readout − 1)², of readouts [T, B, K].

    Temporal efficient training (Deng et al., 2022): every step learns to answer on its own, and the second term keeps
    readouts near the threshold. λ is `weight`.
    """
    readouts = _at_least_float32(readouts)
    repeated = targets.expand(len(readouts), *targets.shape).flatten(0, 1)
    entropy = F.cross_entropy(readouts.flatten(0, 1), repeated)
    return (1 - weight) * entropy + weight * (readouts - 1).square().mean()


def _at_least_float32(x: Tensor) -> Tensor:
    return x.float() if x.dtype.itemsize < 4 else x


class StepReadouts(nn.Module):
    """A network whose `forward` is `forward_steps`: wrappers, such as of several devices, know `forward` alone."""

    def __init__(self, model: SpikingNetwork) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.forward_steps(x)


def network_for(recipe: Recipe, model: SpikingNetwork) -> nn.Module:
    """What to call in training: it returns logits [B, K], or readouts [T, B, K] where the loss reads every step."""
    return StepReadouts(model) if recipe.loss == "tet" else model


def loss_and_logits(recipe: Recipe, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The recipe's loss of what that network returned, and the logits [B, K] by which it answers."""
    if recipe.loss == "tet":
        return tet_loss(outputs, targets, recipe.tet_lambda), outputs.mean(0)
    return mean_logit_loss(outputs, targets), outputs
