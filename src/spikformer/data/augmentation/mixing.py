"""Targets, and batches mixed with themselves: label smoothing, mixup and cutmix, one λ a batch as in timm."""

from __future__ import annotations

import numpy as np
from torch import Tensor
from torch.nn.functional import one_hot

from spikformer.data.augmentation.policy import Augmentation


def smooth_targets(labels: Tensor, num_classes: int, smoothing: float) -> Tensor:
    """Targets [B, K]: 1 - s + s/K for the class of the label, s/K for the others."""
    return one_hot(labels.long(), num_classes).float() * (1 - smoothing) + smoothing / num_classes


def mix(x: Tensor, targets: Tensor, policy: Augmentation, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Mix x [B, C, H, W] and its targets with the batch in reverse order: λ·x + (1 - λ)·reversed, or a pasted box."""
    if not (policy.mixup or policy.cutmix) or random.random() >= policy.mix_probability:
        return x, targets
    pastes = bool(policy.cutmix) and (not policy.mixup or random.random() < policy.cutmix_share)
    alpha = policy.cutmix if pastes else policy.mixup
    kept = float(random.beta(alpha, alpha))
    if pastes:
        x, kept = paste_box(x, kept, random)
    else:
        x = kept * x + (1 - kept) * x.flip(0)
    return x, kept * targets + (1 - kept) * targets.flip(0)


def paste_box(x: Tensor, kept: float, random: np.random.Generator) -> tuple[Tensor, float]:
    """Paste a box that covers 1 - kept of the picture from the reversed batch; returns what was really kept.

    The box's centre may lie anywhere, so that the edge can cut some of it off.
    """
    bounds = []
    for side in (x.shape[-2], x.shape[-1]):
        half = int(side * np.sqrt(1 - kept)) // 2
        centre = int(random.integers(side))
        bounds.append(slice(max(centre - half, 0), min(centre + half, side)))
    rows, columns = bounds
    mixed = x.clone()
    mixed[..., rows, columns] = x.flip(0)[..., rows, columns]
    pasted = (rows.stop - rows.start) * (columns.stop - columns.start)
    return mixed, 1 - pasted / (x.shape[-2] * x.shape[-1])
