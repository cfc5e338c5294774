"""The view of a picture that ImageNet evaluation wants: the short side resized, the centre cut out."""

from __future__ import annotations

from math import floor

import numpy as np
from PIL import Image

_LONGEST = 32  # times the crop's own shape; no photograph is that long


def evaluation_size(size: tuple[int, int], ratio: float) -> tuple[int, int]:
    """Height and width that a picture is resized to cover before the crop; also the size hint to read it with."""
    if not 0 < ratio <= 1:
        raise ValueError(f"ratio must be above 0 and at most 1, got {ratio!r}; 0.875 crops 224 out of 256.")
    if min(size) < 1:
        raise ValueError(f"size must be (height, width), each at least 1, got {size!r}.")
    height, width = size
    return floor(height / ratio), floor(width / ratio)


def evaluation_crop(image: np.ndarray, size: tuple[int, int], ratio: float) -> np.ndarray:
    """uint8 [3, H, W] resized (bicubic) to just cover size / ratio, and of that the centre: [3, *size].

    To the bit what torchvision's Resize and CenterCrop make of a Pillow image.
    """
    cover = evaluation_size(size, ratio)
    image = _shortened(image, cover)
    resized = _covering(image.shape[1:], cover)
    top, left = (round((whole - part) / 2) for whole, part in zip(resized, size, strict=True))
    # A plane at a time: Pillow's RGB has four bytes a pixel, and its planes would have to be woven and parted again.
    planes = (Image.fromarray(plane).resize(resized[::-1], Image.Resampling.BICUBIC) for plane in image)
    return np.stack([np.asarray(plane)[top : top + size[0], left : left + size[1]] for plane in planes])


def _covering(shape: tuple[int, ...], cover: tuple[int, int]) -> tuple[int, int]:
    """The side that needs the larger factor is met exactly, the other one overhangs."""
    rows, columns = shape
    if cover[0] * columns >= cover[1] * rows:
        return cover[0], cover[0] * columns // rows
    return cover[1] * rows // columns, cover[1]


def _shortened(image: np.ndarray, cover: tuple[int, int]) -> np.ndarray:
    """The middle of a ribbon: a picture of 1×100000 would become 256×25600000, to be cut away again."""
    rows, columns = image.shape[1:]
    above = max(0, rows - _LONGEST * (columns * cover[0] // cover[1] + 1)) // 2
    beside = max(0, columns - _LONGEST * (rows * cover[1] // cover[0] + 1)) // 2
    return image[:, above : rows - above, beside : columns - beside]  # as much on both sides: the middle stays
