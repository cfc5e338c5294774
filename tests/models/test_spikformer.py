"""The whole network, every preset made small: shapes, statelessness, streaming, invariance, cost."""

from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import spikformer as sf
from spikformer.analysis.recorder import spike_counts
from spikformer.analysis.specimens import distinct_models, frames_for, shrunk, specimen
from spikformer.neurons import SpikingNeuron
from spikformer.runs.checks import batch_invariance, streaming

ATTENTION = ["ssa", "identity", "relu", "leaky_relu", "softmax", "softmax_float_value", "none", "random"]
ATTENTION += ["spike_driven", "spike_driven_dilated", "token"]
NEURONS = ["lif", "if", "plif", "relu", "gelu"]


@pytest.mark.parametrize("name", distinct_models())
def test_forward_is_the_mean_of_the_steps(name: str) -> None:
    model = specimen(shrunk(name))
    x = frames_for(model.config, batch_size=3)
    steps = model.forward_steps(x)
    assert steps.shape == (model.config.time_steps, 3, model.config.num_classes)
    assert torch.equal(model(x), steps.mean(0))


@pytest.mark.parametrize("name", distinct_models())
def test_nothing_to_reset(name: str) -> None:
    model = specimen(shrunk(name))
    x = frames_for(model.config, batch_size=2)
    first = model(x)
    model(frames_for(model.config, batch_size=3, seed=5))
    assert torch.equal(model(x), first)


@pytest.mark.parametrize("name", distinct_models())
def test_streaming_and_batch_invariance_to_the_last_bit(name: str) -> None:
    model = specimen(shrunk(name))
    for check in streaming(name, model) + batch_invariance(name, model):
        assert check.holds, check


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("neuron", NEURONS)
def test_streaming_and_batch_invariance_of_every_variant(attention: str, neuron: str) -> None:
    model = specimen(
        shrunk("spikformer_2_256_cifar10dvs", attention=attention, neuron=neuron, embed_dim=32, num_heads=4)
    )
    for check in streaming("variant", model) + batch_invariance("variant", model):
        assert check.holds, check


@pytest.mark.parametrize("name", sf.list_models("spikformer_*"))
def test_every_layer_of_a_specimen_fires(name: str) -> None:
    model = specimen(shrunk(name))
    counts = spike_counts(model, frames_for(model.config, batch_size=4))
    assert len(counts) == sum(isinstance(m, SpikingNeuron) for m in model.modules())
    assert all(0 < spikes < total for spikes, total in counts.values()), counts


def test_residual_sums_are_small_integers() -> None:
    model = specimen(shrunk("spikformer_4_384_cifar10"), torch.float32)
    seen = []
    for block in model.blocks:
        block.register_forward_hook(lambda _m, _i, out: seen.append(out))
    model(frames_for(model.config, batch_size=2, dtype=torch.float32))
    for depth, x in enumerate(seen, start=1):
        assert torch.equal(x, x.round())
        assert 1 < x.max() <= 2 + 2 * depth


def flops(function) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        function()
    return counter.get_total_flops()


def test_one_step_of_a_stream_costs_one_step() -> None:
    model = specimen(shrunk("spikformer_2_256_cifar10dvs"), torch.float32)
    x = frames_for(model.config, batch_size=2, dtype=torch.float32)
    state = model.initial_state(2)
    whole = flops(lambda: model.forward_steps(x))
    for frame in x:
        assert flops(partial(model.step, frame, state)) * len(x) == whole
        _, state = model.step(frame, state)


def test_a_static_image_is_cheaper_than_its_copies_by_the_first_convolution() -> None:
    model = specimen(shrunk("spikformer_4_384_cifar10"))  # float64, where sums have an order of ours
    x = frames_for(model.config, batch_size=2)
    copies = x.expand(4, *x.shape)
    assert torch.equal(model(x), model(copies))
    first = 2 * 9 * 3 * model.stem.stages[0].conv.out_channels * x.shape[-2] * x.shape[-1] * 2
    assert flops(lambda: model(copies)) - flops(lambda: model(x)) == 3 * first


def test_event_frames_bring_their_own_number_of_steps() -> None:
    model = specimen(shrunk("spikformer_2_256_dvs128"))
    x = frames_for(model.config, batch_size=2)
    assert model.forward_steps(torch.cat([x, x])).shape[0] == 8 != model.config.time_steps
    assert torch.equal(model.forward_steps(torch.cat([x, x]))[:4], model.forward_steps(x)), "the future is not seen"


def test_streams_of_open_size() -> None:
    config = shrunk("spikformer_4_384_cifar10", image_size=None)
    model = sf.Spikformer(config).eval()
    logits, _ = model.step(torch.randn(2, 3, 8, 12), model.initial_state(2))
    assert logits.shape == (2, 10)


@pytest.mark.parametrize("overrides", [{"v_reset": None}, {"detach_reset": False}, {"v_reset": None, "neuron": "plif"}])
def test_other_resets_run_stream_and_learn(overrides: dict) -> None:
    model = specimen(shrunk("spikformer_tiny_digits", **overrides))
    assert all(check.holds for check in streaming("resets", model))
    model.train()(frames_for(model.config, batch_size=4)).square().sum().backward()
    assert model.stem.stages[0].conv.weight.grad.abs().sum() > 0


def test_a_step_leaves_its_state_alone() -> None:
    model = specimen(shrunk("spikformer_tiny_digits_dvs"))
    frame = frames_for(model.config, batch_size=2)[0]
    _, state = model.step(frame, model.initial_state(2))
    before = [voltage.clone() for voltage in state.voltages]
    first, second = model.step(frame, state), model.step(frame, state)
    assert torch.equal(first[0], second[0])
    assert all(torch.equal(*pair) for pair in zip(before, state.voltages, strict=True))


@pytest.mark.parametrize("linear_init", ["trunc_normal", "torch"])
def test_initialisation(linear_init: str) -> None:
    model = sf.create_model("spikformer_2_384_cifar10", linear_init=linear_init)
    query = model.blocks[0].attention.query.linear
    assert model.head.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not model.head.bias.any()
    if linear_init == "trunc_normal":
        assert query.weight.std().item() == pytest.approx(0.02, rel=0.02)
        assert not query.bias.any()
    else:
        assert query.weight.abs().max().item() == pytest.approx(1 / 384**0.5, rel=0.01)
        assert query.bias.any()


def test_random_attention_keeps_its_queries_through_training() -> None:
    model = sf.create_model("spikformer_tiny_digits", attention="random")
    before = model.blocks[0].attention.query.linear.weight.clone()
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    model(torch.randn(8, 1, 8, 8)).sum().backward()
    optimiser.step()
    assert torch.equal(model.blocks[0].attention.query.linear.weight, before)


@pytest.mark.parametrize(("height", "width"), [(8, 24), (20, 4)])
def test_images_need_not_be_square(height: int, width: int) -> None:
    model = sf.create_model("spikformer_2_384_cifar10", embed_dim=32, num_heads=4, image_size=(height, width))
    assert model(torch.randn(2, 3, height, width)).shape == (2, 10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["spikformer_tiny_digits_dvs", "transformer_4_384_cifar10"])
def test_a_narrow_model_runs_streams_and_learns(name: str, dtype) -> None:
    model = specimen(shrunk(name), torch.float32).to(dtype)
    x = frames_for(model.config, batch_size=2, dtype=torch.float32).to(dtype)
    assert model(x).dtype == dtype
    frame = x[0] if x.ndim == 5 else x
    logits, state = model.step(frame, model.initial_state(2))
    assert torch.isfinite(logits).all()
    assert all(voltage.dtype == torch.float32 for voltage in state.voltages)
    model.train()(x).float().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
