"""Parts of a set: by class, repeatable, none lost."""

import numpy as np
import pytest
from tests.mistakes import field_error

from spikformer.data import ArraySamples
from spikformer.data.splits import Subset, complete_splits, first_of_each_class, hold_out

pytestmark = pytest.mark.core


def numbered(labels: list[int]) -> Subset:
    return Subset.whole(ArraySamples(np.arange(len(labels))[:, None], np.array(labels), "numbers"))


def test_holding_out_takes_the_same_share_of_every_class() -> None:
    labels = np.repeat([0, 1, 2], [100, 50, 10])
    kept, held = hold_out(labels, 0.2, seed=3)
    assert np.bincount(labels[held]).tolist() == [20, 10, 2]
    assert sorted([*kept, *held]) == list(range(160))
    assert not np.array_equal(held, hold_out(labels, 0.2, seed=4)[1])


def test_the_first_of_each_class_in_their_order_rounded_up() -> None:
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0])
    first, rest = first_of_each_class(labels, 0.5)
    assert first.tolist() == [0, 2, 4, 1, 3, 5]
    assert rest.tolist() == [6, 8, 10, 7, 9]


def test_a_subset_of_a_subset_keeps_labels_samples_and_sources() -> None:
    subset = numbered([5, 6, 7, 8]).take(np.array([3, 1])).take(np.array([1]))
    assert (len(subset), subset.labels.tolist(), subset[0].tolist()) == (1, [6], [1])
    assert subset.source(0) == "numbers, sample 1"


def test_validation_is_held_out_of_train_where_there_is_none() -> None:
    train, test = numbered([0] * 20 + [1] * 10), numbered([0, 1])
    splits = complete_splits({"train": train, "test": test}, 0.1)
    assert {name: len(split) for name, split in splits.items()} == {"train": 27, "test": 2, "validation": 3}
    assert not set(splits["train"].indices) & set(splits["validation"].indices)
    assert complete_splits({"train": train, "test": test}, 0) == {"train": train, "test": test}


def test_val_is_for_testing_where_nothing_else_is() -> None:
    train, val, test = numbered([0] * 10), numbered([0]), numbered([0])
    assert complete_splits({"train": train, "validation": val, "test": test}, 0.1)["validation"] is val
    assert complete_splits({"train": train, "validation": val}, 0.1)["test"] is val
    assert complete_splits({"validation": val}, 0.1) == {"test": val}


def test_a_class_too_small_to_share_stays_in_train() -> None:
    assert list(complete_splits({"train": numbered([0, 1, 2])}, 0.1)) == ["train"]


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_is_a_share(share: float) -> None:
    with field_error("validation_share", share):
        complete_splits({"train": numbered([0])}, share)
