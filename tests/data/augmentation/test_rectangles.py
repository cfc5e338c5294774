"""Random rectangles lie in the picture and cover what was asked for."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spikformer.data.augmentation.rectangles import draw_rectangles, fill_rectangles


@settings(max_examples=60, deadline=None)
@given(
    size=st.tuples(st.integers(1, 64), st.integers(1, 64)),
    share=st.floats(0, 1),
    widest=st.floats(1, 5),
    seed=st.integers(0, 2**32),
)
def test_rectangles_lie_in_the_picture(size: tuple[int, int], share: float, widest: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    rectangles = draw_rectangles(np.full((20, 3), share), size, random, widest=widest)
    top, left, bottom, right = rectangles.T
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (bottom <= size[0]).all()
    assert (right <= size[1]).all()
    heights, widths = bottom - top, right - left
    assert (heights >= 0).all()
    # Sides are rounded: each by half a pixel at most.
    drawn = (heights > 0) & (widths > 0)
    area = share * size[0] * size[1]
    assert ((heights[drawn] - 0.5) * (widths[drawn] - 0.5) <= area + 1e-6).all()
    assert ((heights[drawn] + 0.5) * (widths[drawn] + 0.5) >= area - 1e-6).all()


def test_shares_and_aspects_are_as_asked_for() -> None:
    random = np.random.default_rng(0)
    shares = random.uniform(0.02, 1 / 3, (4000, 10))
    top, left, bottom, right = draw_rectangles(shares, (200, 200), random, widest=1 / 0.3).T
    heights, widths = bottom - top, right - left
    assert (heights > 0).all()
    aspects = np.log(heights / widths)
    assert np.abs(aspects).max() < np.log(1 / 0.3) + 0.1
    assert abs(aspects.mean()) < 0.03
    covered = heights * widths / 200**2
    assert 0.019 < covered.min() < 0.025
    assert 0.32 < covered.max() < 0.34
    # Places are uniform: the middle of a rectangle is the middle of the picture on average.
    assert abs((top + bottom).mean() / 2 - 100) < 2
    assert abs((left + right).mean() / 2 - 100) < 2


def test_what_fits_at_no_try_is_left_out_and_the_first_that_fits_is_taken() -> None:
    random = np.random.default_rng(0)
    nowhere = draw_rectangles(np.ones((5, 10)), (16, 16), random)
    assert np.array_equal(nowhere[:, :2], nowhere[:, 2:])
    shares = np.array([[1.0, 0.25, 1 / 16]])
    top, left, bottom, right = draw_rectangles(shares, (16, 16), random)[0]
    assert (bottom - top, right - left) == (8, 8)


def test_painting_leaves_the_rest_and_the_original_alone() -> None:
    x = torch.ones(2, 3, 5, 6)
    painted = fill_rectangles(x, np.array([[1, 2, 4, 6], [0, 0, 0, 0]]), 0.0)
    assert not painted[0, :, 1:4, 2:6].any()
    assert painted[0].sum() == 3 * (30 - 12)
    assert torch.equal(painted[1], x[1])
    assert x.all()
