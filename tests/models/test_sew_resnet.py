"""SEW-ResNet and SEW's networks for events: joins, the image that is normalised once, initial weights, bad configs."""

import pytest
import torch
from tests.models.weight_inputs import weight_inputs

import spikformer as sf
from spikformer.analysis.recorder import spike_counts
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import SEWEventConfig, SEWResNetConfig
from spikformer.errors import FieldError
from spikformer.layers import ResidualBlock
from spikformer.models import SEWEventNet, SEWResNet, build_model
from spikformer.neurons import IF, PLIF
from spikformer.presets import get_preset

pytestmark = pytest.mark.core

SMALL, EVENTS = "sew_resnet_small_cifar10", "sew_wide_7b_net_cifar10dvs"


@pytest.mark.parametrize("name", [SMALL, "sew_resnet_50_imagenet", EVENTS])
@pytest.mark.parametrize("join", ["add", "and", "iand"])
def test_products_of_spikes_are_spikes_and_sums_small_integers(name: str, join: str) -> None:
    model = specimen(shrunk(name, join=join))
    inputs = weight_inputs(model, frames_for(model.config, batch_size=2))
    first, *others, head = inputs.values()
    assert first.min() < 0 or first.max() > 1
    assert head.shape[-1] == model.num_features
    values = {value for x in others for value in x.unique().tolist()}
    assert values <= {float(value) for value in range(2 if join != "add" else 20)}
    assert (max(values) > 1) == (join == "add")


def test_neurons_are_as_published() -> None:
    for name, kind in ((SMALL, IF), (EVENTS, PLIF)):
        neurons = [module for module in build_model(shrunk(name)).modules() if isinstance(module, IF | PLIF)]
        assert {type(neuron) for neuron in neurons} == {kind}
        assert {(n.dynamics.surrogate, n.dynamics.alpha, n.dynamics.v_threshold) for n in neurons} == {
            ("arctan", 2.0, 1.0)
        }


def test_an_image_is_normalised_once_and_frames_step_by_step() -> None:
    model = build_model(shrunk(SMALL)).double().train()
    assert isinstance(model, SEWResNet)
    x = frames_for(model.config, batch_size=2)
    norm = model.stem.norm
    norm.momentum = 1.0
    with torch.no_grad():
        currents = model.stem.conv(x)
        model(x)
        assert torch.allclose(norm.running_var, currents.transpose(0, 1).flatten(1).var(1))  # n = B·H·W
        model(x.expand(4, *x.shape))
        copies = currents.transpose(0, 1).flatten(1).repeat(1, 4)
        assert torch.allclose(norm.running_var, copies.var(1))


@pytest.mark.parametrize("join", ["add", "and", "iand"])
def test_blocks_may_start_as_the_identity(join: str) -> None:
    model = build_model(shrunk(SMALL, join=join, zero_init=True)).train()
    block = model.stages[0][1]
    assert isinstance(block, ResidualBlock)
    assert block.shortcut is None
    x = (torch.rand(4, 2, model.config.widths[0], 6, 8) < 0.3).float()
    assert torch.equal(block(x), x)
    plain = build_model(shrunk(SMALL, join=join))
    assert plain.stages[0][1].layers[-1].norm.weight.eq(1).all()


def test_convolutions_start_with_the_variance_of_what_they_write() -> None:
    conv = sf.create_model("sew_resnet_18_imagenet").stages[3][1].layers[0].conv
    assert conv.weight.std().item() == pytest.approx((2 / (512 * 9)) ** 0.5, rel=0.01)


def test_the_head_of_an_event_network_reads_every_position() -> None:
    model = specimen(shrunk(EVENTS))
    assert isinstance(model, SEWEventNet)
    x = frames_for(model.config, batch_size=2)
    tokens = model.forward_features(x)
    assert tokens.shape[2:] == (12, 16)
    assert model.num_features == 12 * 16 == model.head.in_features
    maps = tokens.transpose(-1, -2).unflatten(-1, (3, 4))
    assert torch.equal(model.forward_steps(x), model.head(maps.flatten(2)))


def test_every_neuron_of_the_published_event_networks_counts() -> None:
    config = get_preset("sew_7b_net_dvs128").config
    assert config.num_parameters - config.override(neuron="lif").num_parameters == 15
    assert len(spike_counts(specimen(shrunk("sew_7b_net_dvs128")), torch.ones(4, 1, 2, 24, 32).double())) == 7


@pytest.mark.parametrize("name", ["sew_resnet_18_imagenet", EVENTS])
def test_the_conventional_twin_runs(name: str) -> None:
    config = shrunk(name, neuron="relu")
    assert torch.isfinite(specimen(config)(frames_for(config, batch_size=2))).all()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("join", {"join": "xor"}),
        ("join", {"join": "and", "neuron": "relu"}),
        ("depths", {"depths": (2, 2)}),
        ("depths", {"depths": (2, 2, 2, 0)}),
        ("depths", {"depths": (2, 2, 2, 1001)}),
        ("widths", {"widths": ()}),
        ("widths", {"widths": (64, 128, 256, 51.2)}),
        ("block", {"block": "wide"}),
        ("stem_kernel_size", {"stem_kernel_size": 4}),
        ("image_size", {"image_size": 200}),
        ("tau", {"tau": 3.0}),
        ("num_heads", {"num_heads": 8}),
        ("zero_init", {"zero_init": 1}),
    ],
)
def test_a_wrong_field_is_named(field: str, values: dict) -> None:
    with pytest.raises(FieldError) as error:
        SEWResNetConfig().override(**values)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("image_size", {"image_size": None}),
        ("image_size", {"image_size": (128, 64)}),
        ("widths", {"in_channels": 32}),
        ("join", {"join": "iand", "neuron": "gelu"}),
        ("tau", {"tau": 1.0}),
        ("depths", {"depths": (1,)}),
    ],
)
def test_a_wrong_field_of_an_event_network_is_named(field: str, values: dict) -> None:
    with pytest.raises(FieldError) as error:
        SEWEventConfig().override(**values)
    assert error.value.field == field


def test_a_config_survives_json() -> None:
    config = SEWResNetConfig(widths=[8, 16], depths=[1, 2], image_size=64)
    assert (config.widths, config.depths) == ((8, 16), (1, 2))
    assert SEWResNetConfig.from_dict(config.to_dict()) == config
