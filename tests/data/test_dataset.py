"""The interface of every set, on the embedded ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.mistakes import unknown_name

from spikformer.data import open_dataset


@pytest.mark.parametrize("name", ["digits", "digits_dvs"])
def test_splits_are_disjoint_by_class_and_always_the_same(name: str) -> None:
    data, again = open_dataset(name), open_dataset(name)
    sizes = [len(data.split(split)) for split in ("train", "validation", "test")]
    assert sizes == [1295, 143, 359]
    for split in ("train", "validation", "test"):
        samples = data.split(split)
        assert np.array_equal(samples.labels, again.split(split).labels)
        assert np.array_equal(samples[7], again.split(split)[7])
        assert set(samples.labels) == set(range(10))
        counts = np.bincount(samples.labels)
        assert counts.max() - counts.min() <= 0.1 * counts.max() + 1
    assert len(data.class_names) == 10


def test_digits_are_normalised_by_the_training_split() -> None:
    data = open_dataset("digits")
    assert data.train[0].dtype == np.uint8
    x = data.prepare(np.stack([data.train[index] for index in range(len(data.train))]))
    assert x.shape == (1295, 1, 8, 8)
    assert x.mean().abs() < 1e-5
    assert x.std().item() == pytest.approx(1.0, abs=1e-3)
    assert data.train.source(3) == f"digits, sample {data.train.indices[3]}"


def test_events_come_with_time_first() -> None:
    data = open_dataset("digits_dvs")
    assert data.events
    assert data.train[0].shape == (8, 2, 16, 16)
    x = data.prepare(np.stack([data.train[0], data.train[1]]))
    assert x.shape == (8, 2, 2, 16, 16)
    assert x.dtype == torch.float32
    assert torch.equal(x[:, 1], torch.as_tensor(data.train[1]).float())


def test_a_split_that_is_not_there_is_reported() -> None:
    data = open_dataset("digits")
    with unknown_name("split", "val", "train", "validation", "test"):
        data.split("val")
    with unknown_name("split", "train", "digits", "validation", "test"):
        replace(data, train=None).split("train")
