"""Merging, splitting and repeating time."""

import pytest
import torch

from spikformer.layers.time import merge_time, over_time, repeat_over_time, split_time

pytestmark = pytest.mark.core


def test_split_undoes_merge() -> None:
    x = torch.randn(4, 3, 2, 5)
    assert torch.equal(split_time(merge_time(x), 4), x)
    assert torch.equal(merge_time(x)[3 * 2 + 1], x[2, 1]), "steps outermost, samples inside"


def test_over_time_is_the_function_at_every_step() -> None:
    x = torch.randn(4, 3, 5)
    assert torch.equal(over_time(lambda s: s.cumsum(-1), x), torch.stack([step.cumsum(-1) for step in x]))


def test_repeating_makes_no_copy() -> None:
    x = torch.randn(1, 3, 5)
    repeated = repeat_over_time(x, 4)
    assert repeated.shape == (4, 3, 5)
    assert repeated.data_ptr() == x.data_ptr()
    assert repeated.stride(0) == 0
