"""Erased rectangles: their colour, size and place."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from spikformer.data import DataSet
from spikformer.data.augmentation import Augmentation, Augmenter


def unnormalised(data: DataSet) -> DataSet:
    return replace(data, preprocessing=replace(data.preprocessing, mean=None, std=None))


def batch(data: DataSet, count: int) -> tuple[Tensor, Tensor]:
    assert data.train is not None
    samples = np.stack([data.train[index] for index in range(count)])
    return torch.as_tensor(samples), torch.as_tensor(data.train.labels[:count])


def augment(policy: Augmentation, data: DataSet, count: int = 16, seed: int = 0, mix: bool = True) -> list[Tensor]:
    return list(Augmenter(policy, data)(*batch(data, count), np.random.default_rng(seed), mix=mix))


def test_erasing_puts_the_mean_colour_into_a_rectangle_of_normalised_images(colour_set: DataSet) -> None:
    samples, labels = batch(colour_set, 1)
    many, same = samples.repeat(2000, 1, 1, 1), labels.repeat(2000)
    x, _ = Augmenter(Augmentation(erase=0.25), colour_set)(many, same, np.random.default_rng(0))
    prepared = colour_set.prepare(samples)
    gone = (x != prepared).all(1)  # [B, H, W]
    assert not x[(x != prepared)].any()
    erased = gone.flatten(1).any(1)
    assert erased.float().mean().item() == pytest.approx(0.25, abs=0.03)
    heights, widths = gone[erased].any(2).sum(1), gone[erased].any(1).sum(1)
    assert torch.equal(heights * widths, gone[erased].sum((1, 2)))


def test_erased_rectangles_cover_two_hundredths_to_a_third_and_may_be_long(colour_set: DataSet) -> None:
    augmenter = Augmenter(Augmentation(erase=1.0), unnormalised(colour_set))
    white, labels = torch.full((3000, 1, 64, 64), 255, dtype=torch.uint8), torch.zeros(3000, dtype=torch.long)
    gone = augmenter(white, labels, np.random.default_rng(0))[0][:, 0] == 0
    shares = gone.float().mean((1, 2))
    assert 0.018 < shares.min() < 0.025
    assert 0.32 < shares.max() < 0.345
    aspects = gone.any(2).sum(1) / gone.any(1).sum(1)
    assert 0.26 < aspects.min() < 0.35
    assert 2.8 < aspects.max() < 3.8


def test_frames_may_be_erased_too_at_one_place_in_all_of_them(event_set: DataSet) -> None:
    augmenter = Augmenter(Augmentation(erase=1.0), event_set)
    frames, labels = torch.ones(50, 4, 2, 16, 16), torch.zeros(50, dtype=torch.long)
    x, _ = augmenter(frames, labels, np.random.default_rng(0))
    assert x.shape == (4, 50, 2, 16, 16)
    assert (x == x[:1, :, :1]).all()
    assert (x.mean((0, 2, 3, 4)) < 1).all()
