"""Random rectangles: where random erasing and cutout take something away."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


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
