"""What is watched is what happened: membranes explain spikes, maps explain products, and nothing is left behind."""

from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise

import pytest
import torch
from tests.mistakes import field_error, mistake, unknown_name
from torch import Tensor, nn

import spikformer as sf
from spikformer.analysis.recorder import Record, record, spike_counts
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.errors import UnknownNameError
from spikformer.models import Spikformer

pytestmark = pytest.mark.core

CIFAR, EVENTS, TINY = "spikformer_4_384_cifar10", "spikformer_2_256_dvs128", "spikformer_tiny_digits"
NEURONS = {
    "lif": {},
    "lif, τ = 1.5, reset below 0": {"tau": 1.5, "v_reset": -0.25},
    "if": {"neuron": "if"},
    "plif": {"neuron": "plif", "tau": 1.7},
}


def watch(model: Spikformer, x: Tensor) -> Record:
    with torch.no_grad(), record(model) as seen:
        model(x)
    return seen


def num_hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


def membranes_by_hand(model: Spikformer, seen: Record, layer: str) -> Tensor:
    """H, from the paper's equations."""
    config, threshold = model.config, model.get_submodule(layer).dynamics.v_threshold
    leak, gain = (0.0, 1.0) if config.neuron == "if" else (1.0, 1 / config.tau)
    voltage, found = torch.full_like(seen.currents[layer][0], config.v_reset), []
    for current in seen.currents[layer]:
        found.append(voltage + gain * (current - leak * (voltage - config.v_reset)))
        voltage = torch.where(found[-1] >= threshold, config.v_reset, found[-1])
    return torch.stack(found)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("neuron", NEURONS)
def test_a_spike_is_where_the_membrane_reached_its_threshold(neuron: str, dtype: torch.dtype) -> None:
    model = specimen(shrunk(CIFAR, attention_scale=0.5, **NEURONS[neuron]), dtype)
    seen = watch(model, frames_for(model.config, 3, dtype))
    thresholds = set()
    for name, spikes in seen.spikes.items():
        membrane = seen.membrane(name)
        threshold = model.get_submodule(name).dynamics.v_threshold
        assert (membrane.dtype, membrane.shape) == (dtype, spikes.shape)
        assert torch.equal(membrane >= threshold, spikes == 1), name
        torch.testing.assert_close(membrane, membranes_by_hand(model, seen, name))
        thresholds.add(threshold)
        assert 0 < spikes.mean() < 1, "a silent layer proves nothing"
    assert thresholds == {0.5, 1.0}
    assert len(seen.spikes) == 5 + 2 * 7


def test_a_stream_is_watched_with_the_voltage_it_goes_on_from() -> None:
    model = specimen(shrunk(EVENTS))
    frames = frames_for(model.config, 2)
    whole, state = watch(model, frames), model.initial_state(2)
    for step, frame in enumerate(frames):
        with torch.no_grad(), record(model) as seen:
            _, state = model.step(frame, state)
        for name in whole.spikes:
            assert torch.equal(seen.membrane(name)[0], whole.membrane(name)[step]), (name, step)


def test_a_time_constant_that_is_learnt_later_changes_no_membrane_of_before() -> None:
    model = specimen(shrunk(TINY, neuron="plif"))
    seen = watch(model, frames_for(model.config, 2))
    before = seen.membrane("stem.position.neuron")
    nn.init.constant_(model.stem.position.neuron.gain_logit, 3.0)
    assert torch.equal(seen.membrane("stem.position.neuron"), before)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        (CIFAR, {}),
        (CIFAR, {"attention": "random"}),
        (CIFAR, {"attention": "identity", "attention_scale": 0.3}),
        (CIFAR, {"attention": "relu"}),
        (CIFAR, {"attention": "leaky_relu"}),
        (CIFAR, {"attention": "softmax"}),
        (CIFAR, {"attention": "softmax_float_value"}),
        (TINY, {}),
        (EVENTS, {}),
        (EVENTS, {"qk_pool": 5, "attention": "softmax", "learnable_scale": False}),
        ("transformer_4_384_cifar10", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())) or "as it is",
)
def test_maps_times_values_are_the_products(name: str, overrides: dict[str, object]) -> None:
    model = specimen(shrunk(name, **overrides))
    config = model.config
    if config.learnable_scale:
        nn.init.constant_(model.blocks[0].attention.mixing.scale, 0.7)
    seen = watch(model, frames_for(config, 3))
    assert list(seen.attentions) == list(seen.products) == [f"blocks.{index}.attention" for index in range(2)]
    for layer, attention in seen.attentions.items():
        maps = attention.maps()
        assert maps.shape == (config.time_steps, 3, config.num_heads, config.num_tokens, config.num_tokens)
        product = (maps @ attention.value).transpose(2, 3).flatten(3)
        torch.testing.assert_close(product, seen.products[layer], rtol=1e-12, atol=1e-12)
        assert seen.products[layer].abs().max() > 0
        if config.attention.startswith("softmax"):
            torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps[..., 0]))


def test_heads_are_slices_of_features_and_a_pool_is_seen() -> None:
    model = specimen(shrunk(EVENTS))
    seen, width = watch(model, frames_for(model.config, 2)), model.config.head_dim
    attention = seen.attention("blocks.1.attention")
    value = seen.spikes["blocks.1.attention.value.neuron"]
    query = seen.spikes["blocks.1.attention.query.neuron"]
    for head in range(model.config.num_heads):
        features = slice(head * width, (head + 1) * width)
        assert torch.equal(attention.value[:, :, head], value[..., features])
        own = query[..., features]
        around = torch.zeros_like(own)
        around[:, :, 1:] += own[:, :, :-1]
        around[:, :, :-1] += own[:, :, 1:]
        assert torch.equal(attention.query[:, :, head], (own + around > 0).to(own.dtype))


def test_rates_are_means_by_step_and_counts_are_of_all_of_them() -> None:
    model = specimen(shrunk(TINY))
    x = frames_for(model.config, 5)
    seen, counts = watch(model, x), spike_counts(model, x)
    assert list(counts) == list(seen.spikes)
    for name, rate in seen.firing_rates().items():
        assert rate.shape == (4,)
        spikes, total = counts[name]
        assert rate.mean().item() * total == pytest.approx(spikes)
        assert rate[2].item() == pytest.approx((seen.spikes_of(name)[2] == 1).double().mean().item())


def test_the_last_pass_is_kept() -> None:
    model = specimen(shrunk(TINY))
    first, second = (frames_for(model.config, size, seed=size) for size in (2, 3))
    with torch.no_grad(), record(model) as seen:
        model(first)
        model(second)
    alone = watch(model, second)
    assert all(torch.equal(seen.spikes[name], alone.spikes[name]) for name in alone.spikes)
    assert torch.equal(seen.membrane("stem.position.neuron"), alone.membrane("stem.position.neuron"))


def test_watching_changes_nothing_and_ends() -> None:
    model = specimen(shrunk(TINY))
    x = frames_for(model.config, 2)
    with torch.no_grad():
        expected = model(x)
        with record(model) as outer, record(model) as inner:
            assert torch.equal(model(x), expected)
    assert num_hooks(model) == 0
    assert torch.equal(outer.spikes["stem.position.neuron"], inner.spikes["stem.position.neuron"])
    with torch.no_grad():
        model(frames_for(model.config, 4))
    assert outer.spikes["stem.position.neuron"].shape[1] == 2


def test_hooks_are_taken_off_after_a_failure() -> None:
    model = specimen(shrunk(TINY))
    with field_error("channels", 1, 3), record(model):
        model(torch.zeros(1, 3, 6, 8, dtype=torch.float64))
    assert num_hooks(model) == 0


def test_training_is_watched_without_a_trace_in_its_gradients() -> None:
    model = specimen(shrunk(TINY)).train()
    twin, x = deepcopy(model), frames_for(model.config, 4)
    with record(model) as seen:
        model(x).square().sum().backward()
    twin(x).square().sum().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)
    kept = [*seen.spikes.values(), *seen.currents.values(), *seen.products.values()]
    kept += [seen.membrane(name) for name in seen.spikes] + [each.maps() for each in seen.attentions.values()]
    assert not any(tensor.requires_grad for tensor in kept)
    name = "blocks.0.mlp.hidden.neuron"
    assert torch.equal(seen.membrane(name) >= 1, seen.spikes[name] == 1)


@pytest.mark.parametrize("attention", ["ssa", "identity", "softmax"])
@pytest.mark.parametrize("training", [False, True])
def test_mixed_precision(attention: str, training: bool) -> None:
    model = specimen(shrunk(CIFAR, attention=attention), torch.float32).train(training)
    with torch.autocast("cpu", torch.bfloat16), record(model) as seen:
        model(frames_for(model.config, 3, torch.float32))
    assert seen.currents["stem.position.neuron"].dtype == torch.bfloat16
    for name, spikes in seen.spikes.items():
        threshold = model.get_submodule(name).dynamics.v_threshold
        assert torch.equal(seen.membrane(name) >= threshold, spikes == 1), name
    for layer, each in seen.attentions.items():
        product = (each.maps() @ each.value).transpose(2, 3).flatten(3)
        torch.testing.assert_close(product, seen.products[layer], rtol=1e-4, atol=1e-5)


def test_networks_without_attention_and_without_neurons() -> None:
    none = watch(specimen(shrunk(TINY, attention="none")), frames_for(shrunk(TINY), 1))
    assert not none.attentions
    assert not none.products
    assert "blocks.1.attention.neuron" in none.spikes
    twin = specimen(shrunk("transformer_4_384_cifar10"))
    seen = watch(twin, frames_for(twin.config, 1))
    assert not seen.spikes
    assert len(seen.attentions) == 2


@pytest.mark.parametrize("ask", [Record.spikes_of, Record.attention, Record.membrane])
def test_an_unknown_layer_is_answered_with_the_nearest(ask: Callable[[Record, str], object]) -> None:
    model = specimen(shrunk(TINY))
    with record(model) as seen, mistake(UnknownNameError, name="head", suggestion=None):
        ask(seen, "head")
    seen = watch(model, frames_for(model.config, 1))
    kind = "attention layer" if ask is Record.attention else "neuron layer"
    with mistake(UnknownNameError, kind=kind, name="block.0.attention") as caught:
        ask(seen, "block.0.attention")
    assert caught.value.suggestion.startswith("blocks.0.attention")
    with unknown_name(kind, "xyz", "blocks.0.attention"):
        ask(seen, "xyz")


def test_layers_are_named_as_the_model_names_them_in_the_order_they_run() -> None:
    model = specimen(shrunk(TINY))
    names = list(watch(model, frames_for(model.config, 1)).spikes)
    assert set(names) <= dict(model.named_modules()).keys()
    stages = ["stem.stages.0.neuron", "stem.stages.1.neuron", "stem.position.neuron", "blocks.0.attention.neuron"]
    places = [names.index(name) for name in [*stages, "blocks.0.mlp.output.neuron", "blocks.1.mlp.output.neuron"]]
    assert all(one < next_one for one, next_one in pairwise(places))


def test_it_has_a_public_name() -> None:
    assert sf.record is record
