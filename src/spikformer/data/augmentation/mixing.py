"""Targets, and batches mixed with themselves: label smoothing, mixup and cutmix, one λ a batch as in timm.

And random rectangles: where random erasing and cutout take something away.
"""

from __future__ import annotations

import numpy as np
import torch
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


def draw_rectangles(
    shares: np.ndarray, size: tuple[int, int], random: np.random.Generator, *, widest: float = 1.0
) -> np.ndarray:
    """Top, left, bottom, right [B, 4] of a rectangle that covers the wanted share of the picture, anywhere in it.

    `shares` [B, tries] holds one share a try; the first that fits is taken, and if none does the rectangle is empty.
    Height to width is log-uniform between 1/widest and widest.
    """
    height, width = size
    areas = shares * height * width
    aspects = np.exp(random.uniform(-np.log(widest), np.log(widest), shares.shape))
    heights, widths = np.rint(np.sqrt(areas * aspects)), np.rint(np.sqrt(areas / aspects))
    fits = (heights < height) & (widths < width)
    chosen = np.arange(len(shares)), fits.argmax(1)
    heights, widths = ((sides * fits)[chosen].astype(np.int64) for sides in (heights, widths))
    tops, lefts = random.integers(height - heights, endpoint=True), random.integers(width - widths, endpoint=True)
    return np.stack([tops, lefts, tops + heights, lefts + widths], 1)


def fill_rectangles(x: Tensor, rectangles: np.ndarray, fill: Tensor | float) -> Tensor:
    """A copy of x [B, C, H, W] with one rectangle a sample painted over, all channels alike."""
    top, left, bottom, right = torch.as_tensor(rectangles, device=x.device).T[:, :, None, None, None]
    rows = torch.arange(x.shape[-2], device=x.device)[:, None]
    columns = torch.arange(x.shape[-1], device=x.device)
    inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)  # [B, 1, H, W]
    return torch.where(inside, torch.as_tensor(fill, dtype=x.dtype, device=x.device), x)
