"""The engine against the model: the same spikes but for rounding, whatever the batch, the threads, the instructions."""

import numpy as np
import pytest
import torch
from tests.engine.drawn import INTEGER_SETS, SETS, needs_integers

import spikformer as sf
from spikformer.analysis.golden import VARIANTS, Golden, load_golden
from spikformer.engine import Engine
from spikformer.engine.native import INSTRUCTIONS
from spikformer.runs.checks import differing_spikes

FLOATS = [name for name in SETS if name not in INTEGER_SETS]

VARIANTS_OF_MODELS = [
    ("spikformer_4_384_cifar10", {}),
    ("spikformer_8_512_imagenet", {}),
    ("spikformer_2_256_cifar10dvs", {}),
    ("spikformer_2_256_dvs128", {}),
    ("spikformer_tiny_digits", {}),
    ("spikformer_tiny_digits_dvs", {"time_steps": 7}),
    ("spikformer_4_384_cifar10", {"attention": "none"}),
    ("spikformer_4_384_cifar10", {"attention": "random", "qkv_bias": False}),
    ("spikformer_4_384_cifar10", {"neuron": "if", "time_steps": 2}),
    ("spikformer_4_384_cifar10", {"neuron": "plif", "tau": 1.6, "time_steps": 5, "v_reset": -0.25}),
    ("spikformer_4_384_cifar10", {"num_heads": 2, "qk_pool": 5, "embed_dim": 176, "learnable_scale": True}),
    ("spikformer_4_384_cifar10", {"image_size": None, "time_steps": 1, "mlp_ratio": 1.5}),
    ("cml_spikformer_4_384_cifar10", {}),
    ("cml_spikformer_2_256_dvs128", {}),
    ("spikingformer_4_384_cifar10", {"neuron": "plif", "tau": 1.6}),
    ("spikingformer_8_512_imagenet", {"image_size": None, "attention": "random", "time_steps": 1}),
    ("spikingformer_2_256_cifar10dvs", {}),
    ("cml_spikingformer_4_384_cifar10", {"neuron": "if", "attention": "none", "mlp_ratio": 1.0}),
    ("cml_spikingformer_2_256_cifar10dvs", {"time_steps": 6}),
]


@pytest.mark.parametrize("mode", ["events", "dense"])
@pytest.mark.parametrize(("name", "overrides"), VARIANTS_OF_MODELS)
def test_readouts_and_spikes_are_the_model_s(case, name, overrides, mode) -> None:
    model, x = case(name, **overrides)
    engine = sf.compile_engine(model, num_threads=2)
    engine.mode = mode
    with torch.no_grad():
        expected = model.forward_steps(x).numpy()
    assert np.abs(expected).max() > 0.05
    steps = engine.forward_steps(x)
    assert (steps.shape, steps.dtype) == (expected.shape, np.float32)
    np.testing.assert_array_equal(engine(x), steps.mean(0))
    differing = differing_spikes(model, engine.spikes(x), x)
    equal = (differing == 0).all(axis=0)
    np.testing.assert_allclose(steps[:, equal], expected[:, equal], atol=2e-6)
    assert equal.sum() >= 4  # of five: where a neuron stood at its threshold, rounding decides for all after it
    for sample in differing.T[~equal]:
        assert sample[sample > 0][0] <= 2


@pytest.mark.parametrize("mode", ["events", "dense"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_authors_networks(variant: str, mode) -> None:
    assert_as_recorded(load_golden(variant), mode)


def assert_as_recorded(golden: Golden, mode) -> None:
    """Logits, and the number of spikes of every neuron but for rounding."""
    engine = sf.compile_engine(golden.model())
    engine.mode = mode
    steps = engine.forward_steps(golden.input)
    logits = steps if golden.eval_logits.ndim == 3 else steps.mean(0)
    np.testing.assert_allclose(logits, golden.eval_logits.numpy(), atol=1e-5)
    spikes = engine.spikes(golden.input)
    assert spikes.keys() == golden.spike_counts.keys()
    for name, (fired, total) in golden.spike_counts.items():
        assert spikes[name].size == total, name
        assert abs(int(spikes[name].sum()) - fired) <= 1e-3 * total, name


@pytest.mark.parametrize("sets", [FLOATS, pytest.param(INTEGER_SETS, marks=needs_integers)])
@pytest.mark.parametrize("mode", ["events", "dense"])
def test_sets_threads_and_batches_give_the_same_bits(case, monkeypatch: pytest.MonkeyPatch, mode, sets) -> None:
    """Of sets that multiply floats, and of those that multiply integers, which are only close to them."""
    model, x = case("spikformer_tiny_digits_dvs", batch_size=3)
    answers = []
    for instructions in sets:
        monkeypatch.setenv(INSTRUCTIONS, instructions)
        for num_threads in (1, 2, 5):
            engine = sf.compile_engine(model, num_threads)
            assert (engine.instructions, engine.num_threads) == (instructions, num_threads)
            engine.mode = mode
            answers.append(engine.forward_steps(x))
    one_by_one = [engine.forward_steps(x[:, index : index + 1]) for index in range(x.shape[1])]
    answers += [np.concatenate(one_by_one, axis=1)]
    assert len(answers) > 3
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


def test_densities_choose_between_events_and_dense(case) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    layers = {layer.name: layer for layer in engine.profile(x)}
    inputs = engine.spikes(x)["blocks.1.mlp.hidden.neuron"]
    assert layers["blocks.1.mlp.output"].density == pytest.approx(inputs.mean())
    assert layers["stem.stages.0"].density is None
    assert layers["stem.stages.0"].dense_share == 1
    assert all(layer.list_ms >= 0 and layer.product_ms > 0 for layer in layers.values())
    engine.density_threshold = 0.0
    assert all(layer.dense_share == 1 for layer in engine.profile(x) if layer.density)
    engine.density_threshold = 1.0
    assert all(layer.dense_share == 0 for layer in engine.profile(x) if layer.density)


@pytest.mark.parametrize("mode", ["events", "dense"])
@pytest.mark.parametrize("name", ["spikformer_4_384_cifar10", "spikformer_2_256_dvs128"])
def test_a_stream_is_the_same_as_all_steps_at_once(case, name, mode) -> None:
    model, x = case(name, batch_size=3)
    engine = sf.compile_engine(model)
    engine.mode = mode
    at_once = engine.forward_steps(x)
    state, model_state = engine.initial_state(3), model.initial_state(3)
    for t in range(len(at_once)):
        frame = x if x.ndim == 4 else x[t]
        logits, state = engine.step(frame, state)
        np.testing.assert_array_equal(logits, at_once[t])
        with torch.no_grad():
            expected, model_state = model.step(frame, model_state)
        np.testing.assert_allclose(logits, expected.numpy(), atol=2e-6)


def test_a_state_is_not_changed_by_a_step(case) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    state = engine.initial_state(5)
    once, _ = engine.step(x, state)
    again, after = engine.step(x, state)
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(after.voltages, state.voltages)


def test_many_samples_go_through_in_bounded_memory(case) -> None:
    model, x = case(batch_size=50)
    engine = sf.compile_engine(model)
    everything = engine(x)
    first = engine.buffer_bytes
    np.testing.assert_array_equal(engine(x.repeat(4, 1, 1, 1)), np.tile(everything, (4, 1)))
    assert engine.buffer_bytes == first


def test_a_model_in_double_precision_is_compiled_to_single(case) -> None:
    model, x = case()
    np.testing.assert_array_equal(sf.compile_engine(model.double())(x), sf.compile_engine(model.float())(x))


def test_it_describes_itself(case) -> None:
    engine = sf.compile_engine(case()[0], num_threads=2)
    assert repr(engine).startswith(f"Engine({len(engine.program.ops)} ops, T = 4, ")
    assert repr(engine).endswith(", 2 threads)")
    assert repr(sf.compile_engine(case()[0], num_threads=1)).endswith(", 1 thread)")
    assert isinstance(engine, Engine)
