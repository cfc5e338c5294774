"""Every architecture's program: the reference against the model, the engine against the reference, files and counts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.engine.drawn import assert_same_bits
from tests.engine.test_engine import assert_as_recorded
from tests.engine.test_interpreter import flat
from tests.mistakes import field_error, file_error
from torch import Tensor

import spikformer as sf
from spikformer.analysis.golden import FAMILY, WITH_BATCH_LEAK, load_golden
from spikformer.analysis.operations import count_operations
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.engine import Engine
from spikformer.engine.interpreter import run_reference
from spikformer.engine.lowering import from_model, from_weights
from spikformer.engine.ops import Convolve
from spikformer.engine.program import Program
from spikformer.engine.reference import membranes_reference
from spikformer.models import SpikingNetwork, build_model
from spikformer.runs.checks import differing_spikes

RECORDINGS = Path(__file__).parents[3] / "shared" / "golden" / "family"

FEW = {"image_size": (16, 32), "embed_dim": 32, "num_heads": 4, "attention_scale": 1.0}
STAGES = {"image_size": (32, 64), "embed_dim": 64, "num_heads": 4, "attention_scale": 1.0}
DILATED = {"embed_dim": 32, "num_heads": 4, "attention_v_threshold": 6.0}
TOKEN = {"attention": "token", "num_heads": 1, "attention_v_threshold": 14.0}
NETWORKS = {
    "spikformer": ("spikformer_4_384_cifar10", {"embed_dim": 32, "num_heads": 4, "attention_scale": 0.5}),
    "cml_spikformer": ("cml_spikformer_2_256_dvs128", FEW | {"attention_v_threshold": 0.25}),
    "spikingformer": ("spikingformer_8_512_imagenet", FEW),
    "spikingformer_plif": ("spikingformer_4_384_cifar10", {"neuron": "plif", "tau": 1.6, "embed_dim": 48}),
    "cml_spikingformer": ("cml_spikingformer_4_384_cifar10", {"embed_dim": 48, "attention_scale": 0.5}),
    "spike_driven": ("spike_driven_transformer_2_512_cifar10", {"embed_dim": 32}),
    "spike_driven_dilated": ("spike_driven_transformer_2_256_cifar10dvs", DILATED),
    "spike_driven_inner": ("spike_driven_transformer_2_512_cifar10", {"mlp_ratio": 1.0, "neuron": "plif", "depth": 2}),
    "qkformer": ("qkformer_4_384_cifar10", {"embed_dim": 32, "num_heads": 4, "attention_scale": 0.5}),
    "qkformer_imagenet": ("qkformer_10_512_imagenet", STAGES),
    "qkformer_events": ("qkformer_2_256_cifar10dvs", STAGES),
    "ms_qkformer": ("ms_qkformer_4_384_cifar10", {"embed_dim": 32, "num_heads": 4, "attention_scale": 0.5}),
    "ms_qkformer_imagenet": ("ms_qkformer_10_384_imagenet", STAGES | {"mlp_ratio": 1.0}),
    "maxformer": ("maxformer_4_384_cifar10", {"embed_dim": 32, "num_heads": 4, "attention_scale": 0.5}),
    "maxformer_imagenet": ("maxformer_10_384_imagenet", STAGES),
    "maxformer_events": ("maxformer_2_256_cifar10dvs", STAGES | {"attention": "spike_driven"}),
    "spikformer_token": ("spikformer_4_384_cifar10", TOKEN),
    "sew_add": ("sew_resnet_18_imagenet", {"image_size": (32, 64)}),
    "sew_and": ("sew_resnet_18_imagenet", {"image_size": (32, 64), "join": "and"}),
    "sew_iand": ("sew_resnet_50_imagenet", {"image_size": (32, 64), "join": "iand"}),
    "sew_events": ("sew_wide_7b_net_cifar10dvs", {"image_size": 8}),
    "sew_events_iand": ("sew_7b_net_dvs128", {"image_size": 8, "join": "iand"}),
    "max_resnet": ("max_resnet_18_cifar10", {"widths": (16,), "depths": (2,), "stem_width": 16}),
    "spikformer_spike_driven": ("spikformer_4_384_cifar10", {"attention": "spike_driven", "num_heads": 1}),
}
"""Small enough for NumPy to add event by event. With these scales and thresholds no neuron is silent or saturated."""

WITHOUT_PROGRAM = ("maxresnet_cifar", "sew_dvs", *WITH_BATCH_LEAK)
"""Recordings with weights that read membranes, a head that reads 4×4 positions, samples that leak into each other."""

Network = tuple[SpikingNetwork, Tensor]


LARGE = ("qkformer_events", "maxformer_events", "ms_qkformer", "sew_and", "sew_iand", "spike_driven_inner")
MARKED = [
    pytest.param(name, marks=pytest.mark.slow) if name.endswith("imagenet") or name in LARGE else name
    for name in NETWORKS
]


@pytest.fixture(scope="module", params=MARKED)
def network(request: pytest.FixtureRequest) -> Network:
    """A network in float64, and two samples for it, of integers: sums of pixels are exact then."""
    name, overrides = NETWORKS[request.param]
    config = shrunk(name, **{"time_steps": 3} | overrides)
    return specimen(config), frames_for(config, batch_size=2, seed=3).round()


def spikes_of(program: Program, buffers: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What every neuron did: [T, B, positions, channels]."""
    return {op.name: flat(buffers[number]) for number, op in program.state_ops()}


def test_numpy_agrees_with_the_model_in_double_precision(network: Network) -> None:
    model, x = network
    program = from_model(model).program
    buffers = run_reference(program, x.numpy().astype(np.float32))
    with torch.no_grad():
        expected = model.forward_steps(x).numpy()
    differing = differing_spikes(model, spikes_of(program, buffers), x)
    equal = (differing == 0).all(axis=0)
    np.testing.assert_allclose(buffers[-1][:, equal, 0, 0], expected[:, equal], atol=2e-6)
    assert equal.any()
    for sample in differing.T[~equal]:  # where a neuron stood at its threshold, rounding decides for all after it
        assert sample[sample > 0][0] <= 2


def test_the_engine_is_numpy_to_the_last_bit_by_events(network: Network) -> None:
    """Spikes and membranes; the readout of floats is close."""
    model, x = network
    program = exact_on_pixels(from_model(model).program)
    frames = x.numpy().astype(np.float32)
    buffers = run_reference(program, frames)
    engine = Engine(program, num_threads=2)
    engine.mode = "events"
    np.testing.assert_allclose(engine.forward_steps(frames), buffers[-1][:, :, 0, 0], atol=1e-6)
    membranes, spikes = engine.membranes(frames), engine.spikes(frames)
    expected = spikes_of(program, buffers)
    assert list(spikes) == list(expected)
    for _, op in program.state_ops():
        np.testing.assert_array_equal(spikes[op.name], expected[op.name], op.name)
        assert 0 < spikes[op.name].mean() < 1, op.name
        currents = flat(buffers[op.inputs[0]]).astype(np.float32)
        currents = np.broadcast_to(currents, (len(expected[op.name]), *currents.shape[1:]))
        assert_same_bits(np.ascontiguousarray(membranes[op.name]), membranes_reference(currents, op.neuron.as_tuple()))


def exact_on_pixels(program: Program) -> Program:
    """With weights of pixels that are multiples of 1/64: of integers, their sums are exact in any order."""
    ops = [
        replace(op, weights=np.round(op.weights * 64) / np.float32(64))
        if isinstance(op, Convolve) and op.inputs == (0,)
        else op
        for op in program.ops
    ]
    return replace(program, ops=tuple(ops))


def test_a_stream_is_close_to_all_steps_at_once(network: Network) -> None:
    model, x = network
    engine = sf.compile_engine(model)
    engine.mode = "events"
    at_once, state = engine.forward_steps(x), engine.initial_state(2)
    for t, expected in enumerate(at_once):
        logits, state = engine.step(x if x.ndim == 4 else x[t], state)
        np.testing.assert_allclose(logits, expected, atol=2e-6)


def test_files_hold_the_same_program(network: Network, tmp_path: Path) -> None:
    model, x = network
    weights, ours = tmp_path / "net.safetensors", tmp_path / "net.engine"
    sf.save(model, weights)
    of_file, of_model = from_weights(weights), from_model(model)
    engines = Engine(of_file), Engine(of_model)
    for number, engine in enumerate(engines):
        engine.mode = "events"
        engine.save(tmp_path / f"{number}.engine")
    assert (tmp_path / "0.engine").read_bytes() == (tmp_path / "1.engine").read_bytes()
    engines[0].save(ours)
    loaded = sf.load_engine(ours)
    loaded.mode = "events"
    assert loaded.config == model.config
    np.testing.assert_array_equal(loaded(x), engines[1](x))


def test_operations_are_the_model_s(network: Network) -> None:
    model, _ = network
    counted = {layer.name: layer.macs for layer in count_operations(model)}
    ours = from_model(model).program.macs(*model.config.image_size)
    assert ours == {name.removesuffix(".conv").removesuffix(".linear"): macs for name, macs in counted.items()}


@pytest.mark.parametrize(
    ("name", "overrides", "field"),
    [
        ("spikingformer_4_384_cifar10", {"attention": "softmax"}, "attention"),
        ("spikingformer_4_384_cifar10", {"neuron": "gelu"}, "neuron"),
        ("spike_driven_transformer_2_512_cifar10", {"neuron": "relu"}, "neuron"),
        ("spike_driven_transformer_2_512_cifar10", {"v_reset": None}, "v_reset"),
        ("maxformer_4_384_cifar10", {"attention": "relu"}, "attention"),
        ("qkformer_4_384_cifar10", {"batch_leak": True}, "batch_leak"),
        ("sew_resnet_18_imagenet", {"v_reset": None}, "v_reset"),
        ("sew_wide_7b_net_cifar10dvs", {}, "image_size"),  # its head reads 3×4 positions
        ("max_resnet_18_cifar10", {}, "widths"),  # its shortcuts' weights read membranes
    ],
)
@pytest.mark.filterwarnings("ignore:QKFormer with batch_leak")
def test_networks_that_cannot_run_on_spikes(name: str, overrides: dict, field: str, tmp_path: Path) -> None:
    model = build_model(shrunk(name, **overrides)).eval()
    with field_error(field):
        from_model(model)
    sf.save(model, tmp_path / "net.safetensors")
    with file_error(tmp_path / "net.safetensors", "unfit", at=field):
        from_weights(tmp_path / "net.safetensors")


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f"there are no recordings in {RECORDINGS}")
@pytest.mark.parametrize("variant", [name for name in FAMILY if name not in WITHOUT_PROGRAM])
def test_the_authors_networks(variant: str) -> None:
    assert_as_recorded(load_golden(variant, RECORDINGS), "events")
