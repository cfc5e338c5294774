"""Evaluating as a function: a part of a split, and mistakes that raise."""

import pytest
import torch
from tests.mistakes import field_error

from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.models import SpikingNetwork
from spikformer.presets import get_preset
from spikformer.runs.evaluate import evaluate


@pytest.fixture
def model() -> SpikingNetwork:
    model = specimen(get_preset("spikformer_tiny_digits").config, torch.float32)
    model.card = open_dataset("digits").card("spikformer")
    return model


def test_a_part_of_a_split_is_taken_from_all_over_it_and_always_the_same(model: SpikingNetwork) -> None:
    found = evaluate(model, max_samples=50)
    assert found.num_samples == 50
    assert sum(map(bool, map(sum, found.confusion))) == 10, "every class"
    assert found == evaluate(model, max_samples=50)


def test_more_than_there_are_is_all(model: SpikingNetwork) -> None:
    assert evaluate(model, split="validation", max_samples=10**6) == evaluate(model, split="validation")


@pytest.mark.parametrize("option", [{"max_samples": 0}, {"batch_size": 0}, {"workers": -1}])
def test_wrong_counts(model: SpikingNetwork, option: dict[str, int]) -> None:
    with field_error(*next(iter(option.items()))):
        evaluate(model, data=None, **option)
