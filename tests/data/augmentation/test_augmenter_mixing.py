"""Targets, mixed batches and rectangles."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spikformer.data.augmentation import Augmentation
from spikformer.data.augmentation.augmenter import (
    draw_rectangles,
    fill_rectangles,
    mix_batch,
    paste_box,
    smooth_targets,
)


def weights(policy: Augmentation, num_batches: int = 4000, side: int = 4) -> np.ndarray:
    """What is kept of the first of two samples, batch after batch."""
    random = np.random.default_rng(0)
    x, targets = torch.zeros(2, 1, side, side), torch.eye(2)
    return np.array([mix_batch(x, targets, policy, random)[1][0, 0].item() for _ in range(num_batches)])


def test_smoothed_targets_share_a_part_among_all_classes() -> None:
    targets = smooth_targets(torch.tensor([2, 0]), 4, 0.1)
    assert torch.allclose(targets[0], torch.tensor([0.025, 0.025, 0.925, 0.025]))
    assert torch.allclose(targets.sum(1), torch.ones(2))
    assert torch.equal(smooth_targets(torch.tensor([1]), 3, 0.0), torch.tensor([[0.0, 1.0, 0.0]]))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_mixup_blends_with_the_batch_in_reverse_order(count: int) -> None:
    x, targets = torch.randn(count, 2, 6, 4), torch.eye(count)
    mixed, blended = mix_batch(x, targets, Augmentation(mixup=1.0), np.random.default_rng(0))
    kept = np.random.default_rng(0)
    kept.random()
    share = kept.beta(1.0, 1.0)
    assert torch.allclose(mixed, share * x + (1 - share) * x.flip(0))
    assert torch.allclose(blended, share * targets + (1 - share) * targets.flip(0))


@pytest.mark.parametrize("alpha", [0.5, 0.8, 4.0])
def test_weights_are_drawn_from_the_beta_distribution(alpha: float) -> None:
    drawn = weights(Augmentation(mixup=alpha))
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)
    assert drawn.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.06)


def test_cutmix_covers_what_the_beta_distribution_says_but_for_what_the_edge_cuts_off() -> None:
    drawn = weights(Augmentation(cutmix=1.0), side=128)
    # Of a box with sides a at a uniform centre (a - a²/4)² is inside; λ = 1 - a² is uniform, so ∫ 2a (a - a²/4)² da.
    assert 1 - drawn.mean() == pytest.approx(2 * (1 / 4 - 1 / 10 + 1 / 96), abs=0.02)


def test_batches_are_mixed_as_often_as_asked() -> None:
    assert (weights(Augmentation(mixup=1.0, mix_probability=0.3)) < 1).mean() == pytest.approx(0.3, abs=0.03)
    assert (weights(Augmentation(mixup=1.0, mix_probability=0.0), 50) == 1).all()


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_cutmix_takes_its_share_where_both_are_on(share: float) -> None:
    random = np.random.default_rng(0)
    x = torch.stack([torch.zeros(1, 16, 16), torch.ones(1, 16, 16)])
    policy = Augmentation(mixup=1.0, cutmix=1.0, cutmix_share=share)
    # Only a blend has anything between 0 and 1.
    blends = [
        bool(((mixed > 0) & (mixed < 1)).any()) for mixed, _ in (mix_batch(x, x, policy, random) for _ in range(1500))
    ]
    assert 1 - np.mean(blends) == pytest.approx(share, abs=0.04)


@settings(max_examples=80, deadline=None)
@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    count=st.integers(1, 5),
    kept=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_what_cutmix_keeps_is_the_share_of_its_pixels(
    size: tuple[int, int], count: int, kept: float, seed: int
) -> None:
    x = torch.arange(count).float().view(-1, 1, 1, 1).expand(count, 2, *size)
    mixed, share = paste_box(x, kept, np.random.default_rng(seed))
    partner = x.flip(0)
    assert ((mixed == x) | (mixed == partner)).all()
    assert 0 <= share <= 1
    assert share >= kept - 1e-9, "the box may only be smaller than asked"
    for sample in range(count):
        if not torch.equal(x[sample], partner[sample]):
            assert (mixed[sample] == x[sample]).float().mean().item() == pytest.approx(share, abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 9), smoothing=st.floats(0, 1))
def test_targets_always_sum_to_one(seed: int, count: int, smoothing: float) -> None:
    random = np.random.default_rng(seed)
    targets = smooth_targets(torch.as_tensor(random.integers(0, 7, count)), 7, smoothing)
    _, mixed = mix_batch(torch.zeros(count, 1, 8, 8), targets, Augmentation(mixup=0.8, cutmix=1.0), random)
    assert torch.allclose(mixed.sum(1), torch.ones(count), atol=1e-6)
    assert (mixed >= 0).all()


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
