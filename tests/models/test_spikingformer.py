"""Spikingformer: membranes in the residual stream, spikes before every weight but the first and the head."""

import pytest
import torch
from tests.mistakes import field_error
from tests.models.weight_inputs import weight_inputs

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import SpikingformerConfig
from spikformer.models import Spikingformer, build_model
from spikformer.neurons import LIF

pytestmark = pytest.mark.core

PRESETS = ["spikingformer_4_384_cifar10", "cml_spikingformer_8_512_imagenet", "cml_spikingformer_2_256_cifar10dvs"]


@pytest.mark.parametrize("name", PRESETS)
def test_weights_see_spikes(name: str) -> None:
    model = specimen(shrunk(name))
    inputs = weight_inputs(model, frames_for(model.config, batch_size=2))
    real = {layer for layer, x in inputs.items() if not set(x.unique().tolist()) <= {0.0, 1.0}}
    assert real == {"stem.stages.0.conv", "head"}


@pytest.mark.parametrize(("pool_after", "side"), [("neuron", 16), ("norm", 8)])
def test_neurons_fire_at_the_pooled_resolution_with_cml(pool_after: str, side: int) -> None:
    model = build_model(SpikingformerConfig(image_size=16, embed_dim=32, num_heads=4, depth=1, pool_after=pool_after))
    with sf.record(model.eval()) as seen, torch.no_grad():
        model(torch.randn(2, 3, 16, 16))
    assert seen.spikes_of("stem.stages.2.neuron").shape[-2:] == (side, side)
    assert seen.spikes_of("blocks.0.attention.input_neuron").shape == (4, 2, 16, 32)


def test_the_head_alone_starts_truncated_normal() -> None:
    model = sf.create_model("spikingformer_2_384_cifar10")
    assert isinstance(model, Spikingformer)
    assert model.head.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not model.head.bias.any()
    assert model.blocks[0].mlp.hidden.linear.weight.std().item() == pytest.approx((3 * 384) ** -0.5, rel=0.05)


def test_events_have_the_published_tau() -> None:
    for name, tau in (("spikingformer_2_256_dvs128", 1.5), ("cml_spikingformer_2_256_dvs128", 1.75)):
        model = build_model(shrunk(name))
        assert {neuron.tau for neuron in model.modules() if isinstance(neuron, LIF)} == {tau}


def test_an_option_of_another_architecture_is_named() -> None:
    with field_error("qk_pool"):
        sf.create_model("spikingformer_4_384_cifar10", qk_pool=3)
    with field_error("pool_after"):
        sf.create_model("spike_driven_transformer_2_512_cifar10", pool_after="norm")
