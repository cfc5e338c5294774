"""Losses of a network's readouts [T, B, K].

Targets are shares of classes [B, K], as mixing and smoothing leave them, or labels [B].
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def mean_logit_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of the mean readout [B, K]; in float32 at least."""
    return F.cross_entropy(_at_least_float32(logits), targets)


def tet_loss(readouts: Tensor, targets: Tensor, weight: float = 1e-3) -> Tensor:
    """(1 − λ)·mean over steps of CE(readout_t, y) + λ·mean of (readout − 1)², of readouts [T, B, K].

    Temporal efficient training (Deng et al., 2022): every step learns to answer on its own, and the second term keeps
    readouts near the threshold. λ is `weight`.
    """
    readouts = _at_least_float32(readouts)
    entropy = F.cross_entropy(readouts.flatten(0, 1), _at_every_step(targets, len(readouts)))
    return (1 - weight) * entropy + weight * (readouts - 1).square().mean()


def distillation_loss(readouts: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """τ²·KL(softmax(teacher/τ) ‖ softmax(readout/τ)), the mean over samples and steps of readouts [T, B, K].

    Hinton et al., 2015: τ² keeps the gradient's size when the temperature τ changes.
    """
    learnt = F.log_softmax(_at_least_float32(readouts).flatten(0, 1) / temperature, -1)
    wanted = F.log_softmax(_at_least_float32(teacher_logits) / temperature, -1)
    wanted = _at_every_step(wanted, len(readouts))
    return temperature**2 * F.kl_div(learnt, wanted, reduction="batchmean", log_target=True)


def _at_every_step(targets: Tensor, time_steps: int) -> Tensor:
    """Targets [B, …] repeated to [T·B, …]."""
    return targets.expand(time_steps, *targets.shape).flatten(0, 1)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.float() if x.dtype.itemsize < 4 else x
