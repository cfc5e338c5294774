"""Operations on brightness and colour, with Pillow's mathematics and timm's "increasing" strengths.

Images [N, C, H, W] lie between 0 and 1; a strength lies between -1 and 1, and only the four enhancements, which go
both ways, look at its sign. Gray images may have them all: taking colour out of gray leaves it as it is, as in Pillow.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from kornia import enhance
from torch import Tensor


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
    return 1 + 0.9 * strengths


def _at_least(images: Tensor, levels: Tensor) -> Tensor:
    # Half a level lower, so that float rounding cannot tip a pixel that is exactly there.
    return images >= (levels.to(images) - 0.5).view(-1, 1, 1, 1) / 255
