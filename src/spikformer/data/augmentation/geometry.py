"""Rotations, shears and translations: one matrix a sample, one warp for all of them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from kornia.geometry.transform import warp_affine
from torch import Tensor

Interpolation = Literal["nearest", "bilinear", "bicubic"]


def affine_matrices(
    names: np.ndarray, strengths: np.ndarray, size: tuple[int, int], *, events: bool = False
) -> np.ndarray:
    """Matrices [B, 2, 3] that send a pixel's old (x, y) to its new one; a strength of ±1 is the most a recipe does.

    The ends are timm's for images (30°, 0.3, 0.45 of a side) and the authors' for events (30°, 0.3, 5 pixels).
    """
    height, width = size

    def only(name: str, most: float) -> np.ndarray:
        return np.where(names == name, strengths * most, 0.0)

    angle = np.radians(only("rotate", 30.0))
    linear = np.empty((len(names), 2, 2))
    linear[:, 0, 0] = linear[:, 1, 1] = np.cos(angle)
    linear[:, 0, 1] = only("shear_x", 0.3) - np.sin(angle)
    linear[:, 1, 0] = only("shear_y", 0.3) + np.sin(angle)

    most_x, most_y = (5.0, 5.0) if events else (0.45 * width, 0.45 * height)
    moved = np.stack([only("translate_x", most_x), only("translate_y", most_y)], 1)

    # What stays in place: the middle, but the upper left corner where timm shears an image.
    still = np.broadcast_to([(width - 1) / 2, (height - 1) / 2], moved.shape)
    if not events:
        still = np.where(np.isin(names, ("shear_x", "shear_y"))[:, None], -0.5, still)
    offset = still - np.einsum("bij,bj->bi", linear, still) + moved
    return np.concatenate([linear, offset[:, :, None]], 2)


def warp(x: Tensor, matrices: np.ndarray, fill: Tensor | float, interpolation: Interpolation) -> Tensor:
    """Move the pixels of x [B, C, H, W]; what comes from beyond the edge is `fill`, without a blend, as in Pillow."""
    size = (x.shape[-2], x.shape[-1])
    matrix = torch.as_tensor(matrices, dtype=x.dtype, device=x.device)
    inside = warp_affine(torch.ones_like(x[:, :1]), matrix, size, mode="nearest")
    moved = warp_affine(x, matrix, size, mode=interpolation, padding_mode="border")
    return torch.where(inside > 0, moved, torch.as_tensor(fill, dtype=x.dtype, device=x.device))
