"""Every operation on brightness and colour against Pillow's, on photographs."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from spikformer.data.augmentation.operations import COLOUR_OPERATIONS
from spikformer.data.augmentation.policy import COLOUR

MAGNITUDES = (0.0, 3.0, 7.4, 9.0, 9.9)


def bits(magnitude: float) -> int:
    return 4 - int(magnitude / 10 * 4)


def darker_half(magnitude: float) -> list[int]:
    return [min(255, level + int(magnitude / 10 * 110)) if level < 128 else level for level in range(256)]


# Ours name → (Pillow's picture at a magnitude, levels between them). Pillow cuts fractions off where we round, and
# rounds the gray that it blends with; operations that only look levels up must agree exactly.
PILLOW: dict[str, tuple[Callable[[Image.Image, float], Image.Image], int]] = {
    "auto_contrast": (lambda picture, _: ImageOps.autocontrast(picture), 1),
    "equalize": (lambda picture, _: ImageOps.equalize(picture), 0),
    "invert": (lambda picture, _: ImageOps.invert(picture), 0),
    "posterize": (lambda picture, magnitude: ImageOps.posterize(picture, bits(magnitude)), 0),
    "solarize": (lambda picture, magnitude: ImageOps.solarize(picture, 256 - int(magnitude / 10 * 256)), 0),
    "solarize_add": (lambda picture, magnitude: picture.point(darker_half(magnitude) * len(picture.getbands())), 0),
    "color": (lambda picture, magnitude: ImageEnhance.Color(picture).enhance(1 + magnitude * 0.09), 1),
    "contrast": (lambda picture, magnitude: ImageEnhance.Contrast(picture).enhance(1 + magnitude * 0.09), 1),
    "brightness": (lambda picture, magnitude: ImageEnhance.Brightness(picture).enhance(1 + magnitude * 0.09), 1),
    "sharpness": (lambda picture, magnitude: ImageEnhance.Sharpness(picture).enhance(1 + magnitude * 0.09), 1),
}
TWO_WAYS = ("color", "contrast", "brightness", "sharpness")


def difference(name: str, picture: Image.Image, magnitude: float) -> np.ndarray:
    levels = np.atleast_3d(np.asarray(picture))
    images = torch.tensor(levels).permute(2, 0, 1)[None] / 255
    ours = COLOUR_OPERATIONS[name](images, torch.tensor([magnitude / 10])) * 255
    theirs = np.atleast_3d(np.asarray(PILLOW[name][0](picture, magnitude))).astype(np.float64)
    return np.abs(ours[0].permute(1, 2, 0).round().clamp(0, 255).numpy() - theirs)


def test_all_operations_are_there() -> None:
    assert set(COLOUR_OPERATIONS) == set(COLOUR) == set(PILLOW)


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", COLOUR)
def test_operations_are_those_of_pillow(name: str, mode: str, photographs: np.ndarray) -> None:
    magnitudes = (*MAGNITUDES, *(-magnitude for magnitude in MAGNITUDES)) if name in TWO_WAYS else MAGNITUDES
    for photograph in photographs:
        picture = Image.fromarray(photograph).convert(mode)
        for magnitude in magnitudes:
            assert difference(name, picture, magnitude).max() <= PILLOW[name][1], magnitude


@pytest.mark.parametrize("name", COLOUR)
def test_pictures_with_few_levels_are_no_exception(name: str) -> None:
    ramp = np.repeat(np.arange(64, dtype=np.uint8)[None] * 2 + 60, 16, 0)
    for picture in (np.full((16, 16), 7, np.uint8), np.where(np.eye(16) > 0, 9, 250).astype(np.uint8), ramp):
        assert difference(name, Image.fromarray(picture), 9.0).max() <= PILLOW[name][1]


def test_every_sample_has_its_own_strength(photographs: np.ndarray) -> None:
    images = torch.tensor(photographs).permute(0, 3, 1, 2) / 255
    strengths = torch.tensor([0.2, -0.8])
    for name, operation in COLOUR_OPERATIONS.items():
        together = operation(images, strengths)
        alone = [operation(images[[sample]], strengths[[sample]])[0] for sample in (0, 1)]
        assert torch.allclose(together, torch.stack(alone), atol=1e-6), name


def test_the_strongest_posterizing_leaves_one_bit(photographs: np.ndarray) -> None:
    images = torch.tensor(photographs).permute(0, 3, 1, 2) / 255
    levels = COLOUR_OPERATIONS["posterize"](images, torch.ones(2)) * 255
    assert set(levels.round().unique().tolist()) == {0.0, 128.0}


@pytest.mark.parametrize("name", ["solarize", "solarize_add", *TWO_WAYS])
def test_without_strength_nothing_changes(name: str, photographs: np.ndarray) -> None:
    images = torch.tensor(photographs).permute(0, 3, 1, 2)
    changed = COLOUR_OPERATIONS[name](images / 255, torch.zeros(2)) * 255
    assert torch.equal(changed.round().to(torch.uint8), images)
