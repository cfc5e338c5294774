"""AdamW: what decays and what does not, and what is left out."""

import pytest
import torch
from torch import nn

import spikformer as sf
from spikformer.neurons import PLIF
from spikformer.training.optimiser import build_optimiser, set_learning_rate

pytestmark = pytest.mark.core


def groups(model: nn.Module, weight_decay: float = 0.06) -> tuple[set[str], set[str]]:
    """Names of parameters that decay, and of those that do not."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    decaying: set[str] = set()
    others: set[str] = set()
    for group in build_optimiser(model, weight_decay).param_groups:
        assert group["weight_decay"] in (weight_decay, 0.0)
        (decaying if group["weight_decay"] else others).update(names[parameter] for parameter in group["params"])
    return decaying, others


@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "spikformer_tiny_digits_dvs"])
@pytest.mark.parametrize("overrides", [{}, {"neuron": "plif"}, {"learnable_scale": True}, {"neuron": "relu"}], ids=str)
def test_weights_of_products_decay_and_nothing_else(name: str, overrides: dict) -> None:
    model = sf.create_model(name, **overrides)
    products = {
        f"{path}.weight"
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.Conv2d | nn.Conv1d)
    }
    decaying, others = groups(model)
    assert decaying == products
    assert others == {path for path, _ in model.named_parameters()} - products


def test_biases_norms_scales_and_neurons_are_among_the_others() -> None:
    model = sf.create_model("spikformer_tiny_digits", neuron="plif", learnable_scale=True)
    _, others = groups(model)
    assert {"head.bias", "stem.stages.0.norm.weight", "stem.stages.0.norm.bias"} <= others
    assert "blocks.0.attention.mixing.scale" in others
    neurons = {f"{path}.gain_logit" for path, module in model.named_modules() if isinstance(module, PLIF)}
    assert neurons
    assert neurons <= others


def test_frozen_queries_and_keys_are_left_out() -> None:
    model = sf.create_model("spikformer_tiny_digits", attention="random")
    decaying, others = groups(model)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert any("query.linear.weight" in name for name in frozen)
    assert any("key.norm.bias" in name for name in frozen)
    assert not frozen & (decaying | others)
    assert frozen | decaying | others == {name for name, _ in model.named_parameters()}


def test_a_step_without_gradient_shrinks_only_what_decays() -> None:
    model = sf.create_model("spikformer_tiny_digits")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
            parameter.grad = torch.zeros_like(parameter)
    optimiser = build_optimiser(model, weight_decay=0.5)
    set_learning_rate(optimiser, 0.1)
    optimiser.step()
    assert torch.all(model.head.weight == 1 - 0.1 * 0.5)
    assert torch.all(model.head.bias == 1)
    assert torch.all(model.stem.stages[0].norm.weight == 1)


def test_the_rate_is_set_everywhere() -> None:
    optimiser = build_optimiser(sf.create_model("spikformer_tiny_digits"), 0.1)
    set_learning_rate(optimiser, 0.025)
    assert [group["lr"] for group in optimiser.param_groups] == [0.025, 0.025]
