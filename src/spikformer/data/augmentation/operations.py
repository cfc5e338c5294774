"""RandAugment on a batch: draw an operation for every sample, then do each kind on all its samples at once.

Rotations, shears and translations are one matrix a sample, and one warp for all of them. Operations on brightness and
colour have Pillow's mathematics and timm's "increasing" strengths: images [N, C, H, W] lie between 0 and 1, a strength
between -1 and 1, and only the four enhancements, which go both ways, look at its sign. Gray images may have them all:
taking colour out of gray leaves it as it is, as in Pillow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from kornia import enhance
from kornia.geometry.transform import warp_affine
from torch import Tensor

from spikformer.data.augmentation.augmenter import draw_rectangles, fill_rectangles
from spikformer.data.augmentation.policy import GEOMETRIC, Augmentation

_SPAN = 0.9  # of an enhancement's factor, at full strength
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


def resize_rectangles(x: Tensor, rectangles: np.ndarray) -> Tensor:
    """Rectangles (top, left, bottom, right) [B, 4] of bytes x [B, C, H, W], each resized to H×W (bicubic)."""
    size = (x.shape[-2], x.shape[-1])
    starts, sides = rectangles[:, :2], rectangles[:, 2:] - rectangles[:, :2]
    scales = np.array(size) / sides  # of rows and columns
    matrices = np.zeros((len(x), 2, 3))
    matrices[:, [1, 0], [1, 0]] = scales
    matrices[:, [1, 0], 2] = (0.5 - starts) * scales - 0.5  # from pixel centre to pixel centre
    matrix = torch.as_tensor(matrices, dtype=torch.float32, device=x.device)
    return _to_bytes(warp_affine(x.float(), matrix, size, mode="bicubic", padding_mode="border"))


def jitter_color(x: Tensor, changes: np.ndarray, orders: np.ndarray) -> Tensor:
    """A copy of bytes x [B, C, H, W] with brightness, contrast and saturation times 1 + change [B, 3].

    `orders` [B, 3] says which of them comes first, second and third.
    """
    x = x.clone()
    for place in range(3):
        for which, operation in enumerate((brightness, contrast, color)):
            members = np.flatnonzero(orders[:, place] == which)
            if len(members):
                strength = torch.as_tensor(changes[members, which] / _SPAN, dtype=torch.float32, device=x.device)
                x[members] = _to_bytes(operation(x[members] / 255, strength) * 255)
    return x


def auto_contrast(images: Tensor, strengths: Tensor) -> Tensor:
    """Stretch every channel to the whole range; kornia's normalize_min_max would turn an even channel black."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low), images)


def equalize(images: Tensor, strengths: Tensor) -> Tensor:
    return enhance.equalize(images)


def invert(images: Tensor, strengths: Tensor) -> Tensor:
    return 1 - images


def posterize(images: Tensor, strengths: Tensor) -> Tensor:
    """Keep 4 bits down to 1."""
    # Official: timm goes down to 0 bits at magnitude 10, a black picture; Pillow refuses that by now.
    return enhance.posterize(images, (4 - (strengths.abs() * 4).int()).clamp(min=1))


def solarize(images: Tensor, strengths: Tensor) -> Tensor:
    """Invert what is as bright as a threshold that sinks from 256 to 0."""
    threshold = 256 - (strengths.abs() * 256).int()
    return torch.where(_at_least(images, threshold), 1 - images, images)


def solarize_add(images: Tensor, strengths: Tensor) -> Tensor:
    """Brighten the darker half by up to 110 of 255; kornia's `additions` would also invert the brighter one."""
    added = (strengths.abs() * 110).int() / 255
    brighter = (images + added.view(-1, 1, 1, 1)).clamp(max=1)
    return torch.where(_at_least(images, torch.full_like(added, 128)), images, brighter)


def color(images: Tensor, strengths: Tensor) -> Tensor:
    # kornia's adjust_saturation works in HSV; this one blends with gray, as Pillow does.
    return enhance.adjust_saturation_with_gray_subtraction(images, _factor(strengths))


def contrast(images: Tensor, strengths: Tensor) -> Tensor:
    # kornia's adjust_contrast multiplies; this one blends with the mean of gray, as Pillow does.
    return enhance.adjust_contrast_with_mean_subtraction(images, _factor(strengths))


def brightness(images: Tensor, strengths: Tensor) -> Tensor:
    # kornia's adjust_brightness adds; this one multiplies, as Pillow does.
    return enhance.adjust_brightness_accumulative(images, _factor(strengths))


def sharpness(images: Tensor, strengths: Tensor) -> Tensor:
    return enhance.sharpness(images, _factor(strengths))


COLOUR_OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    operation.__name__: operation
    for operation in (
        auto_contrast,
        equalize,
        invert,
        posterize,
        solarize,
        solarize_add,
        color,
        contrast,
        brightness,
        sharpness,
    )
}


def _factor(strengths: Tensor) -> Tensor:
    """Of an enhancement: 1 changes nothing, 0.1 and 1.9 are the ends."""
    return 1 + _SPAN * strengths


def _at_least(images: Tensor, levels: Tensor) -> Tensor:
    # Half a level lower, so that float rounding cannot tip a pixel that is exactly there.
    return images >= (levels.to(images) - 0.5).view(-1, 1, 1, 1) / 255


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
