"""The interface of every set, on the embedded ones."""

import numpy as np
import pytest
import torch

from spikformer.data import open_dataset
from spikformer.data.dataset import hold_out


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
    x = data.prepare(data.train.arrays)
    assert x.shape == (1295, 1, 8, 8)
    assert x.mean().abs() < 1e-5
    assert x.std().item() == pytest.approx(1.0, abs=1e-3)
    assert "digits, sample 3" in data.train.source(3)


def test_events_come_with_time_first() -> None:
    data = open_dataset("digits_dvs")
    assert data.events
    assert data.train[0].shape == (8, 2, 16, 16)
    x = data.prepare(np.stack([data.train[0], data.train[1]]))
    assert x.shape == (8, 2, 2, 16, 16)
    assert torch.equal(x[:, 1], torch.as_tensor(data.train[1]))


def test_wrong_names_are_answered() -> None:
    with pytest.raises(ValueError, match=r"no data set 'mnits' yet; choose from digits, digits_dvs"):
        open_dataset("mnits")
    with pytest.raises(ValueError, match=r"A split is one of train, validation, test, got 'val'"):
        open_dataset("digits").split("val")


def test_holding_out_takes_the_same_share_of_every_class() -> None:
    labels = np.repeat([0, 1, 2], [100, 50, 10])
    kept, held = hold_out(labels, 0.2, seed=3)
    assert np.bincount(labels[held]).tolist() == [20, 10, 2]
    assert sorted([*kept, *held]) == list(range(160))
    assert not np.array_equal(held, hold_out(labels, 0.2, seed=4)[1])
