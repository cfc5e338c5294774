"""Firing over a data set: the same as over one large batch, step by step, in the memory of one."""

import gc
import weakref
from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import pytest
import torch
from tests.mistakes import field_error, mistake
from torch import Tensor, nn

from spikformer.analysis.firing import FiringReport, measure_firing
from spikformer.analysis.recorder import mapped_layers, record
from spikformer.analysis.specimens import distinct_models, frames_for, shrunk, specimen
from spikformer.models import Spikformer

TINY, EVENTS, TWIN = "spikformer_tiny_digits", "spikformer_2_256_dvs128", "transformer_4_384_cifar10"


@pytest.fixture(scope="module")
def model() -> Spikformer:
    return specimen(shrunk(TINY))


def assert_same(one: FiringReport, other: FiringReport) -> None:
    for kind in ("inputs", "outputs", "attentions"):
        ours, theirs = getattr(one, kind), getattr(other, kind)
        assert list(ours) == list(theirs)
        for name in ours:
            for field, value in vars(ours[name]).items():
                np.testing.assert_allclose(value, getattr(theirs[name], field), rtol=1e-12, err_msg=f"{name} {field}")
    assert (one.num_samples, one.time_steps, one.static) == (other.num_samples, other.time_steps, other.static)


@pytest.mark.parametrize("name", [TINY, EVENTS, TWIN, "spikformer_4_384_cifar10"])
def test_batches_add_up_to_one(name: str) -> None:
    model = specimen(shrunk(name))
    x = frames_for(model.config, 7)
    samples = 1 if x.ndim == 5 else 0
    pieces = [x.narrow(samples, start, size) for start, size in ((0, 3), (3, 1), (4, 3))]
    reported: list[int] = []
    streamed = measure_firing(model, iter(pieces), reported.append)
    assert reported == [3, 1, 3]
    assert_same(streamed, measure_firing(model, [x]))
    assert streamed.num_samples == 7
    assert streamed.static == (x.ndim == 4)


@pytest.mark.parametrize("name", [TINY, EVENTS])
def test_it_is_what_a_recorder_sees(name: str) -> None:
    model = specimen(shrunk(name))
    x = frames_for(model.config, 3)
    firing = measure_firing(model, [x])
    with torch.no_grad(), record(model) as seen:
        model(x)
    assert list(firing.rates) == list(seen.spikes)
    for layer, rate in seen.firing_rates().items():
        np.testing.assert_allclose(firing.rates[layer], rate)
        spikes = seen.spikes[layer]
        assert firing.num_neurons[layer] == spikes[0, 0].numel()
        assert firing.outputs[layer].num_nonzero.tolist() == spikes.flatten(1).count_nonzero(1).tolist()
        assert firing.outputs[layer].binary
    assert list(firing.attentions) == list(seen.attentions)
    for layer, attention in seen.attentions.items():
        rates = firing.attentions[layer].rates
        for letter, x in (("Q", attention.query), ("K", attention.key), ("V", attention.value)):
            np.testing.assert_allclose(rates[letter], x.flatten(1).mean(1))


@pytest.mark.filterwarnings("ignore:QKFormer with batch_leak")
def test_neurons_that_take_samples_for_steps_have_a_rate_for_each_step() -> None:
    model = specimen(shrunk("qkformer_4_384_cifar10", batch_leak=True))
    x, layer = frames_for(model.config, 3), "blocks.2.attention.projection.neuron"
    raw: list[Tensor] = []
    with model.get_submodule(layer).register_forward_hook(lambda _neuron, _inputs, spikes: raw.append(spikes)):
        firing = measure_firing(model, [x, x[:2]])
    steps = model.config.time_steps
    by_step = [spikes.unflatten(0, (steps, -1)).flatten(1) for spikes in raw]  # [T, …] of each batch
    np.testing.assert_allclose(firing.rates[layer], torch.cat(by_step, 1).mean(1))
    assert firing.num_neurons[layer] == raw[0][0].numel()
    assert {len(rates) for rates in firing.rates.values()} == {steps}
    with torch.no_grad(), record(model) as seen:
        model(x)
    assert torch.equal(seen.spikes[layer], raw[0].unflatten(0, (steps, 3)))
    assert torch.equal(seen.membrane(layer) >= 1, seen.spikes[layer] == 1)
    assert all(len(rates) == steps for rates in seen.firing_rates().values())


@pytest.mark.parametrize("name", distinct_models())
def test_every_architecture_is_measured_step_by_step(name: str) -> None:
    model = specimen(shrunk(name), torch.float32)
    x = frames_for(model.config, 2, torch.float32)
    firing = measure_firing(model, [x])
    assert {len(rates) for rates in firing.rates.values()} in ({model.config.time_steps}, set())
    with torch.no_grad(), record(model) as seen:
        model(x)
    assert list(seen.spikes) == list(firing.rates)
    for layer in seen.spikes:
        assert torch.equal(
            seen.membrane(layer) >= model.get_submodule(layer).dynamics.v_threshold, seen.spikes[layer] == 1
        )
    layers = list(seen.products) if seen.spikes else []
    assert list(firing.operands) == layers
    assert list(seen.token_maps()) == list(seen.products) == list(mapped_layers(model).values())


def test_inputs_are_those_of_every_weighted_layer_in_the_order_they_run(model: Spikformer) -> None:
    x = frames_for(model.config, 3)
    expected: dict[str, Tensor] = {}
    handles = [
        module.register_forward_pre_hook(lambda _module, given, name=name: expected.update({name: given[0]}))
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    ]
    with torch.no_grad():
        model(x)
    for handle in handles:
        handle.remove()
    firing = measure_firing(model, [x])
    assert list(firing.inputs) == list(expected)
    assert len(expected) == 3 + 2 * 6 + 1
    first, *others = expected
    assert torch.equal(expected[first], x)
    assert firing.inputs[first].mean.tolist() == pytest.approx([x.mean().item()]), "an image is seen once"
    for name in others:
        steps, seen = expected[name].unflatten(0, (4, 3)).flatten(1), firing.inputs[name]
        np.testing.assert_allclose(seen.mean, steps.mean(1))
        assert seen.density.tolist() == (steps != 0).double().mean(1).tolist()
        assert seen.histogram[:, 2].tolist() == (steps == 2).sum(1).tolist()


def test_which_layers_read_spikes_and_which_read_sums(model: Spikformer) -> None:
    firing = measure_firing(model, [frames_for(model.config, 4)])
    inputs = firing.inputs
    assert not inputs["stem.stages.0.conv"].binary
    assert inputs["stem.stages.0.conv"].num_fractions.sum() > 0
    for name in ("stem.stages.1.conv", "stem.position.conv", "blocks.0.mlp.output.linear"):
        assert inputs[name].binary, name
    for name in ("blocks.0.attention.query.linear", "blocks.1.attention.value.linear", "blocks.1.mlp.hidden.linear"):
        seen = inputs[name]
        assert not seen.binary, name
        assert seen.num_fractions.sum() == 0
        assert seen.histogram[:, 2:].sum() > 0
        assert (seen.mean > seen.density).all()
        assert seen.total.tolist() == (seen.histogram @ np.arange(17)).tolist()
    largest = max(np.flatnonzero(inputs["blocks.1.mlp.hidden.linear"].histogram.sum(0)))
    assert 2 < largest <= 5, "x and its position, and a spike of each of three layers"
    np.testing.assert_array_equal(
        inputs["blocks.1.attention.projection.linear"].mean, firing.rates["blocks.1.attention.neuron"]
    )


def test_event_frames_bring_their_own_steps(model: Spikformer) -> None:
    config = shrunk(EVENTS)
    frames = frames_for(config.override(time_steps=6), 2)
    firing = measure_firing(specimen(config), [frames])
    assert (firing.time_steps, firing.static, firing.num_samples) == (6, False, 2)
    assert firing.inputs["stem.stages.0.conv"].mean.tolist() == pytest.approx(frames.flatten(1).mean(1).tolist())
    assert all(len(rate) == 6 for rate in firing.rates.values())


def test_a_conventional_network_has_no_neurons() -> None:
    twin = specimen(shrunk(TWIN))
    firing = measure_firing(twin, [frames_for(twin.config, 2)])
    assert firing.outputs == firing.rates == firing.num_neurons == {}
    assert len(firing.attentions) == 2
    assert firing.inputs["head"].num_fractions.sum() > 0


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_and_statistics_stay(training: bool) -> None:
    model = specimen(shrunk(TINY)).train(training)
    before = deepcopy(model.state_dict())
    expected = measure_firing(deepcopy(model).eval(), [frames_for(model.config, 3)])
    assert_same(measure_firing(model, [frames_for(model.config, 3)]), expected)
    assert model.training is training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_failure_leaves_no_hook_and_the_mode_as_it_was() -> None:
    model = specimen(shrunk(TINY)).train()

    def failing() -> Iterator[Tensor]:
        yield frames_for(model.config, 1)
        raise OSError("the disk is gone")

    with mistake(OSError, "the disk is gone"):
        measure_firing(model, failing())
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_no_more_than_one_batch_is_alive(model: Spikformer) -> None:
    alive: list[weakref.ref[Tensor]] = []
    given: list[weakref.ref[Tensor]] = []

    def remember(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor | tuple[Tensor, Tensor]) -> None:
        alive.append(weakref.ref(inputs[0]))
        alive.append(weakref.ref(output if isinstance(output, Tensor) else output[0]))

    def batches() -> Iterator[Tensor]:
        for seed in range(4):
            gc.collect()
            assert [reference() for reference in alive if reference() is not None] == []
            assert sum(reference() is not None for reference in given) <= 1, "the one just done"
            batch = frames_for(model.config, 2, seed=seed)
            given.append(weakref.ref(batch))
            yield batch
            del batch

    watched = [model.blocks[0].mlp.hidden.linear, model.blocks[1].attention.mixing, model.stem.position.neuron]
    handles = [module.register_forward_hook(remember) for module in watched]
    firing = measure_firing(model, batches())
    for handle in handles:
        handle.remove()
    assert len(alive) == 4 * 3 * 2
    assert firing.num_samples == 8
    kept = sum(value.size for seen in firing.inputs.values() for value in vars(seen).values())
    assert kept < 22 * 4 * len(firing.inputs), "a few numbers a step, whatever the samples"


def test_wrong_batches_raise(model: Spikformer) -> None:
    image, config = frames_for(model.config, 2), model.config
    with field_error("batches"):
        measure_firing(model, [])
    with field_error("batches"):
        measure_firing(model, image)
    with field_error("type", "tuple"):
        measure_firing(model, [(image, torch.zeros(2))])
    with field_error("dimensions", 3, "[1, 6, 8]"):
        measure_firing(model, [image[0]])
    with field_error("channels", 1, 3):
        measure_firing(model, [torch.zeros(2, 3, *config.image_size)])
    with field_error("batches"):
        measure_firing(model, [image, image.expand(3, *image.shape)])
    with field_error("batches"):
        measure_firing(model, [image, image.expand(4, *image.shape)])
    unsized = specimen(config.override(image_size=None))
    with field_error("batches"):
        measure_firing(unsized, [image, torch.zeros(1, 1, 8, 8, dtype=torch.float64)])
    assert not any(module._forward_hooks for module in model.modules())
