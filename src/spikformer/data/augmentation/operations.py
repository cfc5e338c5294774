"""RandAugment on a batch: draw an operation for every sample, then do each kind on all its samples at once."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spikformer.data.augmentation.colour import COLOUR_OPERATIONS
from spikformer.data.augmentation.geometry import affine_matrices, warp
from spikformer.data.augmentation.policy import GEOMETRIC, Augmentation
from spikformer.data.augmentation.rectangles import draw_rectangles, fill_rectangles


def draw_operations(policy: Augmentation, count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A round: names [B], "identity" where nothing is to be done, and strengths [B] between -1 and 1."""
    names = random.choice(policy.operations, count)
    applied = random.random(count) < policy.operation_probability
    if policy.magnitude is None:
        magnitudes = random.uniform(0, 10, count)
    else:
        magnitudes = random.normal(policy.magnitude, policy.magnitude_std, count).clip(0, 10)
    return np.where(applied, names, "identity"), magnitudes / 10 * random.choice((-1, 1), count)


def apply_operations(
    x: Tensor, names: np.ndarray, strengths: np.ndarray, random: np.random.Generator, *, fill: Tensor | float = 0.0
) -> Tensor:
    """A copy of x [B, C, H, W] with each sample's operation done, and `fill` where nothing is left to be seen.

    Images are bytes, and bytes again after every operation, as with Pillow. Floats are events: they only ever move
    from pixel to pixel, so that counts stay whole.
    """
    events, size = x.is_floating_point(), (x.shape[-2], x.shape[-1])
    x = x.clone()

    moved = np.flatnonzero(np.isin(names, GEOMETRIC))
    if len(moved):
        matrices = affine_matrices(names[moved], strengths[moved], size, events=events)
        if events:
            x[moved] = warp(x[moved], matrices, fill, "nearest")
        else:
            x[moved] = _to_bytes(warp(x[moved].float(), matrices, fill, "bicubic"))

    cut = np.flatnonzero(names == "cutout")
    if len(cut):
        # Official: squares of 0.1 % to 11 % of the frame.
        shares = 0.001 + 0.109 * np.abs(strengths[cut, None])
        x[cut] = fill_rectangles(x[cut], draw_rectangles(shares, size, random), fill)

    for name, operation in COLOUR_OPERATIONS.items():
        members = np.flatnonzero(names == name)
        if len(members):
            strength = torch.as_tensor(strengths[members], dtype=torch.float32, device=x.device)
            x[members] = _to_bytes(operation(x[members] / 255, strength) * 255)
    return x


def _to_bytes(levels: Tensor) -> Tensor:
    return levels.round().clamp(0, 255).to(torch.uint8)
