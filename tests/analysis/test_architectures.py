"""Networks of every architecture at one size: as many parameters and tokens, the same neurons, a forward pass."""

import pytest
import torch
from tests.mistakes import field_error

from spikformer.analysis.architectures import sized_like
from spikformer.config import ModelConfig
from spikformer.models import build_model
from spikformer.presets import get_preset, list_models

NAMES = (
    *("spikformer", "cml_spikformer", "spikingformer", "cml_spikingformer", "spike_driven_transformer"),
    *("qkformer", "ms_qkformer", "maxformer", "max_resnet", "sew_resnet"),
)
SPIKFORMERS = [name for name in list_models("spikformer_*") if type(get_preset(name).config) is ModelConfig]
DIGITS = get_preset("spikformer_tiny_digits").config


@pytest.mark.parametrize("model", SPIKFORMERS)
def test_sizes_are_alike(model: str) -> None:
    config = get_preset(model).config
    sized = sized_like(config)
    assert tuple(sized) == NAMES
    assert sized["spikformer"] == config
    for made in sized.values():
        assert 0.75 < made.num_parameters / config.num_parameters < 1.25
        assert made.grid == config.grid
        for name in ("image_size", "in_channels", "num_classes", "time_steps", "neuron", "tau", "surrogate"):
            assert getattr(made, name) == getattr(config, name)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_network(name: str) -> None:
    config = sized_like(DIGITS)[name]
    model = build_model(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == config.num_parameters
    assert model(torch.randn(2, 1, 8, 8)).shape == (2, 10)


def test_a_change_of_the_recipes_network_reaches_every_architecture() -> None:
    sized = sized_like(
        DIGITS.override(embed_dim=32, num_heads=2, neuron="plif", tau=3.0, time_steps=2, pool_after="norm")
    )
    assert sized["spikformer"].pool_after == "neuron"
    assert {(made.neuron, made.tau, made.time_steps) for made in sized.values()} == {("plif", 3.0, 2)}
    assert max(made.num_parameters for made in sized.values()) < DIGITS.num_parameters / 2


def test_without_a_pool_there_is_one_stage() -> None:
    sized = sized_like(DIGITS.override(pool_stages=(False, False)))
    assert sized["maxformer"].depths == sized["qkformer"].depths == (2,)
    assert {made.grid for made in sized.values()} == {(8, 8)}


def test_conventional_networks_are_not_compared() -> None:
    with field_error("neuron", "'relu'"):
        sized_like(get_preset("transformer_small_cifar10").config)
