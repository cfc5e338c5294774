"""Single samples while the network is watched, and which of them are shown."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from spikformer.data import DataSet, open_dataset
from spikformer.data.dataset import ArraySamples
from spikformer.models import SpikingNetwork
from spikformer.runs.measure import watch_files, watch_samples
from spikformer.runs.trained import choose_samples

DIGITS = open_dataset("digits")


class Damaged(ArraySamples):
    """The first three samples of every class cannot be read."""

    def __getitem__(self, index: int) -> np.ndarray:
        if list(np.flatnonzero(self.labels == self.labels[index])).index(index) < 3:
            raise ValueError(f"{self.source(index)} cannot be read.")
        return super().__getitem__(index)


def labelled(*labels: int, kind: type[ArraySamples] = ArraySamples) -> DataSet:
    names = tuple(map(str, range(max(labels) + 1)))
    images = np.zeros((len(labels), 1, 8, 8), np.uint8)
    return replace(DIGITS, class_names=names, test=kind(images, np.array(labels), "test"))


def test_one_of_each_class_spread_over_all() -> None:
    data = labelled(*range(100), *range(100))
    assert choose_samples(data, "test", 4) == [0, 33, 66, 99]
    assert choose_samples(data, "test", 1) == [0]
    assert choose_samples(data, "test", 0) == []


def test_more_than_there_are_classes_take_turns() -> None:
    data = labelled(1, 0, 0, 0, 1, 2)
    assert choose_samples(data, "test", 3) == [1, 0, 5]
    assert choose_samples(data, "test", 5) == [1, 2, 0, 4, 5]
    assert choose_samples(data, "test", 100) == [1, 2, 3, 0, 4, 5]


def test_samples_that_cannot_be_read_are_passed_over() -> None:
    data = labelled(*(0, 1) * 5, 2, 2, kind=Damaged)
    assert choose_samples(data, "test", 2) == [6, 7], "the one with no readable sample gives its place away"
    assert choose_samples(data, "test", 100) == [6, 8, 7, 9]


def test_what_is_reported_of_a_sample(model: SpikingNetwork) -> None:
    watched = list(watch_samples(model, DIGITS, "test", [4, 2]))
    with torch.no_grad():
        shares = model.eval()(DIGITS.prepare(np.stack([DIGITS.test[4], DIGITS.test[2]]))).softmax(1)
    for each, place, row in zip(watched, (4, 2), shares, strict=True):
        assert np.array_equal(each.sample, DIGITS.test[place])
        assert each.answer == DIGITS.class_names[int(row.argmax())]
        assert each.confidence == pytest.approx(row.max().item(), abs=1e-5)
        assert each.label == DIGITS.class_names[DIGITS.test.labels[place]]
        assert each.title == f"test sample {place}: {each.label}, classified as {each.answer} ({each.confidence:.0%})"
        assert each.seen.spikes["stem.position.neuron"].shape[:2] == (4, 1)
    assert watched[0].seen is not watched[1].seen
    assert not torch.equal(*(each.seen.spikes["stem.position.neuron"] for each in watched))


def test_a_file_has_no_label(model: SpikingNetwork, tmp_path: Path) -> None:
    Image.fromarray(DIGITS.test[4][0]).save(tmp_path / "four.png")
    (watched,) = watch_files(model, [tmp_path / "four.png"])
    (sample,) = watch_samples(model, DIGITS, "test", [4])
    assert np.array_equal(watched.sample, sample.sample)
    assert (watched.label, watched.source) == (None, "four.png")
    assert watched.title == f"four.png: classified as {sample.answer} ({sample.confidence:.0%})"
