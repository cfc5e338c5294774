"""The evaluation crop is to the bit what resizing the short side and cropping the centre gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from spikformer.sampling import evaluation_crop, evaluation_size

pytestmark = pytest.mark.core


def photograph(height: int, width: int) -> np.ndarray:
    coarse = np.random.default_rng(0).integers(0, 256, (7, 9, 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)).transpose(2, 0, 1)


def in_two_steps(image: np.ndarray, size: int, ratio: float) -> np.ndarray:
    """What torchvision does: Resize(short side) and CenterCrop, as evaluation scripts have them."""
    height, width = image.shape[1:]
    short = int(size / ratio)
    resized = (short, int(short * width / height)) if height <= width else (int(short * height / width), short)
    whole = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
    whole = whole.resize(resized[::-1], Image.Resampling.BICUBIC)
    top, left = round((resized[0] - size) / 2), round((resized[1] - size) / 2)
    return np.asarray(whole.crop((left, top, left + size, top + size))).transpose(2, 0, 1)


@pytest.mark.parametrize("shape", [(375, 500), (500, 333), (224, 224), (100, 130), (901, 77), (256, 341)])
@pytest.mark.parametrize(("size", "ratio"), [(224, 0.875), (224, 0.9), (224, 1.0), (32, 0.5), (31, 0.9)])
def test_it_equals_resizing_and_then_cropping(shape, size: int, ratio: float) -> None:
    image = photograph(*shape)
    expected = in_two_steps(image, size, ratio)
    np.testing.assert_array_equal(evaluation_crop(image, (size, size), ratio), expected)


@given(*[st.integers(1, 60)] * 4, st.floats(0.3, 1))
@settings(max_examples=200, deadline=None)
def test_any_picture_gives_the_size_asked_for(height: int, width: int, rows: int, columns: int, ratio: float) -> None:
    assert evaluation_crop(photograph(rows, columns), (height, width), ratio).shape == (3, height, width)


@pytest.mark.parametrize("shape", [(3, 1, 100_001), (3, 100_001, 1)])
def test_a_ribbon_is_no_burden_and_shows_its_middle(shape) -> None:
    ribbon = np.zeros(shape, np.uint8)
    ribbon.reshape(3, -1)[:, 50_000] = 200
    crop = evaluation_crop(ribbon, (224, 224), 0.875)
    assert crop.shape == (3, 224, 224)
    assert crop[:, 112, 112].tolist() == [200] * 3


def test_ratio_and_size_have_an_effect_and_bounds() -> None:
    assert evaluation_size((224, 112), 0.875) == (256, 128)
    image = photograph(60, 80)
    assert (evaluation_crop(image, (32, 32), 0.5) != evaluation_crop(image, (32, 32), 1.0)).any()
    for ratio in (0, -1, 1.01, float("nan")):
        with pytest.raises(ValueError, match="ratio must be above 0 and at most 1"):
            evaluation_crop(image, (32, 32), ratio)
    with pytest.raises(ValueError, match=r"size must be \(height, width\), each at least 1, got \(0, 32\)"):
        evaluation_crop(image, (0, 32), 1.0)
