"""Where pixels go: exactly there for whole pixels and quarter turns, and where Pillow sends them for the rest."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from spikformer.data.augmentation.operations import Interpolation, affine_matrices, warp
from spikformer.data.augmentation.policy import GEOMETRIC

FILL = (10, 200, 90)
PILLOW_MODE = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


def transform(*inverse: float) -> Callable[[Image.Image, Image.Resampling], Image.Image]:
    return lambda picture, mode: picture.transform(
        picture.size, Image.Transform.AFFINE, inverse, resample=mode, fillcolor=FILL
    )


def pillow(name: str, strength: float, size: tuple[int, int]) -> Callable[[Image.Image, Image.Resampling], Image.Image]:
    """As timm calls Pillow, whose matrices point from new to old."""
    height, width = size
    if name == "rotate":
        return lambda picture, mode: picture.rotate(-30 * strength, resample=mode, fillcolor=FILL)
    return {
        "shear_x": transform(1, -0.3 * strength, 0, 0, 1, 0),
        "shear_y": transform(1, 0, 0, -0.3 * strength, 1, 0),
        "translate_x": transform(1, 0, -0.45 * strength * width, 0, 1, 0),
        "translate_y": transform(1, 0, 0, 0, 1, -0.45 * strength * height),
    }[name]


def ours_and_pillows(
    photographs: np.ndarray, name: str, strength: float, mode: Interpolation
) -> tuple[np.ndarray, np.ndarray]:
    size = photographs.shape[1:3]
    images = torch.tensor(photographs).permute(0, 3, 1, 2).float()
    matrices = affine_matrices(np.array([name] * 2), np.array([strength] * 2), size)
    moved = warp(images, matrices, torch.tensor(FILL).view(-1, 1, 1), mode)
    theirs = [pillow(name, strength, size)(Image.fromarray(picture), PILLOW_MODE[mode]) for picture in photographs]
    return moved.permute(0, 2, 3, 1).clamp(0, 255).numpy(), np.stack([np.asarray(picture) for picture in theirs])


@pytest.mark.parametrize("strength", [0.9, -0.93, 0.37])
@pytest.mark.parametrize("name", GEOMETRIC)
def test_images_move_as_in_pillow(name: str, strength: float, photographs: np.ndarray) -> None:
    ours, theirs = ours_and_pillows(photographs, name, strength, "bilinear")
    # Pillow cuts fractions off.
    assert np.abs(ours - theirs).max() < 1.01
    ours, theirs = ours_and_pillows(photographs, name, strength, "nearest")
    # A pixel may come from exactly between two.
    assert (ours != theirs).any(-1).mean() < 0.002


@pytest.mark.parametrize("name", GEOMETRIC)
def test_bicubic_is_nearer_to_pillows_than_bilinear(name: str, photographs: np.ndarray) -> None:
    """Torch's cubic has a = -0.75, Pillow's a = -1, so they agree but for the last bit of sharpness."""
    cubic, theirs = ours_and_pillows(photographs, name, 0.9, "bicubic")
    linear, _ = ours_and_pillows(photographs, name, 0.9, "bilinear")
    off = np.abs(cubic - theirs).mean()
    assert off < 1.5
    assert off < 0.6 * np.abs(linear - theirs).mean()


@settings(max_examples=60, deadline=None)
@given(
    size=st.tuples(st.integers(2, 40), st.integers(2, 40)),
    right=st.integers(-12, 12),
    down=st.integers(-12, 12),
    interpolation=st.sampled_from(["nearest", "bilinear", "bicubic"]),
)
def test_whole_pixels_move_exactly(size: tuple[int, int], right: int, down: int, interpolation: Interpolation) -> None:
    height, width = size
    images = torch.arange(height * width).remainder(251).view(1, 1, height, width).float()
    moved = warp(images, np.array([[[1.0, 0, right], [0, 1, down]]]), 255, interpolation)
    expected = torch.full_like(images, 255)
    rows, columns = height - abs(down), width - abs(right)
    if rows > 0 and columns > 0:
        into = expected[0, 0, max(down, 0) :, max(right, 0) :][:rows, :columns]
        into.copy_(images[0, 0, max(-down, 0) :, max(-right, 0) :][:rows, :columns])
    assert torch.equal(moved if interpolation == "nearest" else moved.round(), expected)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("side", [7, 32, 224])
def test_quarter_turns_are_exact(side: int, interpolation: Interpolation) -> None:
    images = torch.randint(256, (2, 3, side, side), generator=torch.Generator().manual_seed(0)).float()
    matrices = affine_matrices(np.array(["rotate", "rotate"]), np.array([3.0, -3.0]), (side, side))
    turned = warp(images, matrices, 0.0, interpolation).round()
    assert torch.equal(turned[0], images[0].rot90(-1, (1, 2)))
    assert torch.equal(turned[1], images[1].rot90(1, (1, 2)))


def test_without_strength_every_matrix_is_the_identity() -> None:
    for events in (False, True):
        matrices = affine_matrices(np.array(GEOMETRIC), np.zeros(len(GEOMETRIC)), (24, 32), events=events)
        assert np.array_equal(matrices, np.broadcast_to(np.eye(2, 3), matrices.shape))


def test_events_move_by_up_to_five_pixels_and_are_sheared_about_the_middle() -> None:
    names = np.array(["translate_x", "translate_y", "shear_x"])
    matrices = affine_matrices(names, np.array([1.0, -0.4, 1.0]), (65, 129), events=True)
    assert matrices[:2, :, 2].tolist() == [[5, 0], [0, -2]]
    middle, top = np.array([64, 32, 1]), np.array([64, 0, 1])
    assert np.allclose(matrices[2] @ middle, (64, 32))
    assert np.allclose(matrices[2] @ top, (64 - 0.3 * 32, 0))


def test_images_are_sheared_about_their_upper_left_corner() -> None:
    matrices = affine_matrices(np.array(["shear_x", "shear_y"]), np.array([1.0, 1.0]), (64, 64))
    corner = np.array([-0.5, -0.5, 1])
    assert np.allclose(matrices @ corner, -0.5)
