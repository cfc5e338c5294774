"""The moving average of weights, against its formula."""

from dataclasses import replace

import pytest
import torch

import spikformer as sf
from spikformer.training.averaging import WeightAverage

pytestmark = pytest.mark.core


def test_it_is_the_formula_with_a_quick_beginning() -> None:
    model = sf.create_model("spikformer_tiny_digits").double()
    average = WeightAverage(model, decay=0.5)
    expected = model.head.weight.detach().clone()
    for step in range(12):
        with torch.no_grad():
            model.head.weight.copy_(torch.randn_like(model.head.weight))
        average.update(model, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.head.weight.detach()
        assert torch.allclose(average.model.head.weight, expected, atol=1e-12)


def test_statistics_of_norms_are_averaged_and_batches_counted() -> None:
    model = sf.create_model("spikformer_tiny_digits").double()
    average = WeightAverage(model, decay=0.9)
    expected = model.stem.stages[0].norm.running_var.clone()
    for step in range(3):
        model.train()(torch.randn(4, 1, 8, 8, dtype=torch.float64))
        average.update(model, step)
        decay = (1 + step) / (10 + step)
        expected = decay * expected + (1 - decay) * model.stem.stages[0].norm.running_var
    norm = average.model.stem.stages[0].norm
    assert torch.allclose(norm.running_var, expected, atol=1e-12)
    assert norm.num_batches_tracked == 3


def test_it_learns_nothing_itself_and_shares_nothing() -> None:
    model = sf.create_model("spikformer_tiny_digits", attention="random")
    model.card = replace(model.card, data_set="digits")
    average = WeightAverage(model, decay=0.9).model
    assert not any(parameter.requires_grad for parameter in average.parameters())
    assert model.head.weight.requires_grad
    assert average.card == model.card
    before = average.head.weight.clone()
    with torch.no_grad():
        model.head.weight.add_(1)
    assert torch.equal(average.head.weight, before)


def test_weights_that_stand_still_are_their_own_average() -> None:
    model = sf.create_model("spikformer_tiny_digits", neuron="plif")
    average = WeightAverage(model, decay=0.999)
    for step in range(20):
        average.update(model, step)
    for name, tensor in model.state_dict().items():
        assert torch.equal(average.model.state_dict()[name], tensor), name
