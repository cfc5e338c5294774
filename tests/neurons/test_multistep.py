"""The backward pass by hand against autograd, and the native core against its readable twin."""

from dataclasses import fields
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mistakes import field_error, mistake

from spikformer import _native
from spikformer.config import Surrogate
from spikformer.neurons import IF, LIF, PLIF, Dynamics, SpikingNeuron, native, reference, surrogate_gradient
from spikformer.runs.checks import run_by_steps

pytestmark = pytest.mark.core

NEURONS = [
    LIF(),
    LIF(tau=1.5, v_reset=-0.25),
    LIF(tau=3.0, v_threshold=0.5, surrogate="arctan", alpha=2.0),
    IF(),
    IF(v_reset=0.125, surrogate="arctan"),
    PLIF(),
    PLIF(tau=3.0, v_reset=-0.5),
    LIF(v_reset=None),
    IF(v_reset=None, detach_reset=False),
    LIF(v_reset=-0.25, detach_reset=False, surrogate="arctan"),
    PLIF(tau=3.0, v_reset=None),
]


def streamed(neuron: SpikingNeuron, current, voltage):
    return neuron(current, voltage, return_state=True)


def gradients(run, neuron: SpikingNeuron, current, initial, weights):
    inputs = [current.clone().requires_grad_(), initial.clone().requires_grad_()]
    spikes, voltage = run(neuron, *inputs)
    loss = (spikes * weights[:-1]).sum() + (voltage * weights[-1]).sum()
    return [spikes, voltage, *torch.autograd.grad(loss, [*inputs, *neuron.parameters()])]


@pytest.mark.parametrize("neuron", NEURONS, ids=repr)
@pytest.mark.parametrize("kernels", ["native", "reference"])
def test_backward_by_hand_equals_autograd_through_the_steps(neuron, kernels, monkeypatch) -> None:
    if kernels == "reference":
        monkeypatch.setattr("spikformer.neurons.multistep.native", None)
    neuron = neuron.double()
    current, weights = torch.randn(5, 4, 7).double() + 0.5, torch.randn(6, 4, 7).double()
    initial = torch.randn(4, 7).double() / 3
    by_hand = gradients(streamed, neuron, current, initial, weights)
    by_autograd = gradients(run_by_steps, neuron, current, initial, weights)
    for ours, theirs in zip(by_hand, by_autograd, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert by_hand[0].sum() > 0


@pytest.mark.parametrize("v_reset", [0.0, -0.25])
@pytest.mark.parametrize("neuron", ["lif", "if", "plif"])
def test_gradcheck_where_nothing_fires(neuron: str, v_reset: float) -> None:
    """Below threshold the voltage is smooth, so finite differences can speak."""
    make = {"lif": LIF, "if": IF, "plif": PLIF}[neuron]
    module = make(v_threshold=50.0, v_reset=v_reset).double()
    current = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    initial = torch.randn(6, dtype=torch.float64, requires_grad=True)
    parameters = tuple(module.parameters())
    assert torch.autograd.gradcheck(lambda x, v, *_: streamed(module, x, v)[1], (current, initial, *parameters))


@pytest.mark.parametrize("v_reset", [0.0, -0.25])
@pytest.mark.parametrize("neuron", [LIF, IF])
def test_gradients_where_neurons_fire_equal_finite_differences(neuron: type, v_reset: float) -> None:
    """The sigmoid, whose slope is the surrogate, in place of Θ in the last step makes a smooth function of it."""
    module = neuron(v_reset=v_reset).double()
    current = (torch.randn(3, 9) + 1.5).double().requires_grad_()

    def smooth(last: torch.Tensor) -> torch.Tensor:
        _, voltage = module(current[:-1].detach(), return_state=True)
        membrane = voltage + (last - (voltage - v_reset)) / 2 if neuron is LIF else voltage + last
        return torch.sigmoid(4 * (membrane - 1)).sum()

    step = 1e-6
    shifts = torch.eye(9, dtype=torch.float64) * step
    last = current[-1].detach()
    expected = torch.stack([(smooth(last + shift) - smooth(last - shift)) / (2 * step) for shift in shifts])
    spikes = module(current)
    (ours,) = torch.autograd.grad(spikes[-1].sum(), current)
    assert spikes.sum() > 0
    assert torch.allclose(ours[-1], expected, atol=1e-8)


def test_only_the_membrane_is_kept_for_the_backward_pass() -> None:
    kept = []
    current = torch.randn(4, 1000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        LIF()(current)
    assert sum(x.numel() for x in kept) == current.numel()


def test_inference_keeps_nothing() -> None:
    spikes, voltage = LIF()(torch.randn(4, 10), return_state=True)
    assert spikes.grad_fn is None
    assert voltage.grad_fn is None


dynamics = st.builds(
    Dynamics,
    leaky=st.booleans(),
    v_threshold=st.sampled_from([0.5, 1.0]),
    v_reset=st.sampled_from([0.0, -0.25, 0.125]),
    surrogate=st.sampled_from(get_args(Surrogate)),
    alpha=st.sampled_from([1.0, 4.0]),
)


@given(
    dynamics=dynamics,
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    time_steps=st.integers(1, 5),
    tau=st.sampled_from([1.0, 1.7, 2.0, 5.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    layout=st.sampled_from(["contiguous", "reversed", "repeated", "strided"]),
    with_initial=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(max_examples=150, deadline=None)
def test_native_equals_reference(dynamics, shape, time_steps, tau, dtype, layout, with_initial, seed) -> None:
    generator = torch.Generator().manual_seed(seed)

    def draw(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes, generator=generator, dtype=dtype)

    current = {
        "contiguous": lambda: draw(time_steps, *shape),
        "reversed": lambda: draw(time_steps, *reversed(shape)).permute(0, *range(len(shape), 0, -1)),
        "repeated": lambda: draw(1, *shape).expand(time_steps, *shape),
        "strided": lambda: draw(time_steps, *shape, 2)[..., 0],
    }[layout]()
    initial = draw(*shape) if with_initial else None
    gain = 1 / tau if dynamics.leaky else 1.0
    ours = native.forward(current, initial, gain, dynamics, keep_membrane=True)
    twin = reference.forward(current, initial, gain, dynamics, keep_membrane=True)
    for a, b in zip(ours, twin, strict=True):
        assert torch.equal(a, b), "forward is equal to the last bit"

    membrane = twin[2]
    grad_spikes, grad_voltage = draw(time_steps, *shape), draw(*shape) if with_initial else None
    arguments = (grad_spikes, grad_voltage, membrane, initial, gain, dynamics)
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-12}[dtype]
    for a, b in zip(native.backward(*arguments), reference.backward(*arguments), strict=True):
        assert torch.allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernels", ["native", "reference"])
def test_channels_last_stays(kernels: str, monkeypatch) -> None:
    if kernels == "reference":
        monkeypatch.setattr("spikformer.neurons.multistep.native", None)
    current = torch.randn(2 * 3, 4, 5, 5).contiguous(memory_format=torch.channels_last).unflatten(0, (2, 3))
    spikes = LIF()(current)
    assert spikes.stride() == current.stride()


@pytest.mark.parametrize("size", [1023, 1024, 1025, 70_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_native_equals_reference_across_blocks_and_threads(size: int, dtype) -> None:
    torch.set_num_threads(2)
    current, grad = torch.randn(3, size, dtype=dtype), torch.randn(3, size, dtype=dtype)
    dynamics = Dynamics()
    ours, twin = (kernels.forward(current, None, 0.5, dynamics, True) for kernels in (native, reference))
    assert all(torch.equal(a, b) for a, b in zip(ours, twin, strict=True))
    gradients = [k.backward(grad, None, twin[2], None, 0.5, dynamics) for k in (native, reference)]
    torch.set_num_threads(1)
    for a, b in zip(*gradients, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("spikes", (3, 5), "[3, 4]"),
        ("membrane", (2, 4), "[3, 4]"),
        ("voltage", (5,), "[4]"),
        ("current", (12,), "[time_steps, size]"),
    ],
)
def test_the_binding_raises_for_wrong_arrays(name: str, shape: tuple, expected: str) -> None:
    arrays = {"current": (3, 4), "spikes": (3, 4), "membrane": (3, 4), "voltage": (4,)} | {name: shape}
    arrays = {key: np.zeros(size, np.float32) for key, size in arrays.items()}
    with mistake(ValueError, name, expected, list(shape)):
        _native.lif_forward(**arrays, initial=None, gain=0.5, leak=1.0, v_threshold=1.0, v_reset=0.0)


def test_the_binding_raises_for_an_unknown_surrogate() -> None:
    rows, row = np.zeros((3, 4), np.float32), np.zeros(4, np.float32)
    with mistake(ValueError, "surrogate", '"step"'):
        _native.lif_backward(rows, None, rows, None, rows.copy(), row, 0.5, 1.0, 1.0, 0.0, "step", 4.0)


@pytest.mark.parametrize("x", [torch.randn(0, 3), torch.ones(2, 3, dtype=torch.int64)])
def test_no_steps_and_integers_raise(x: torch.Tensor) -> None:
    with field_error("current", x.dtype, list(x.shape)):
        LIF()(x)


def test_a_voltage_of_another_shape_raises() -> None:
    with field_error("initial", "[4]", "[5]"):
        LIF()(torch.randn(3, 4), torch.zeros(5))


def test_a_surrogate_of_ones_own_trains_and_infers_as_the_named_one() -> None:
    own, named = LIF(surrogate=lambda x: surrogate_gradient("sigmoid", x, 4.0)), LIF()
    current = torch.randn(4, 50, dtype=torch.float64) + 0.5
    weights = torch.randn(5, 50, dtype=torch.float64)
    found, expected = (gradients(streamed, n, current, torch.zeros(50).double(), weights) for n in (own, named))
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12)
    with torch.no_grad():
        assert torch.equal(own(current), named(current))


@pytest.mark.parametrize("neuron", NEURONS[:3] + NEURONS[-4:], ids=repr)
@pytest.mark.parametrize("keep_membrane", [False, True])
def test_the_operator_is_what_torch_library_asks_for(neuron: SpikingNeuron, keep_membrane: bool) -> None:
    """Schema, fake tensors and their strides, autograd registration, in one call of PyTorch's own check."""
    current, initial = torch.randn(3, 4, 5), torch.randn(4, 5)
    gain = neuron.gain()
    learnt = gain.detach().clone() if isinstance(gain, torch.Tensor) else None
    number = 1.0 if learnt is not None else gain
    dynamics = (*(getattr(neuron.dynamics, field.name) for field in fields(Dynamics)),)
    if keep_membrane:
        current.requires_grad_()
    arguments = (current, initial, learnt, number, *dynamics, keep_membrane)
    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.spikformer.lif.default, arguments, test_utils=checks)


def test_an_infinite_current_fires_and_resets() -> None:
    current = torch.tensor([[float("inf")], [0.5]])
    spikes, voltage = LIF()(current, return_state=True)
    stepwise, end = run_by_steps(LIF(), current, torch.zeros(1))
    assert spikes.flatten().tolist() == stepwise.flatten().tolist() == [1, 0]
    assert voltage.item() == end.item() == 0.25


def test_an_empty_batch_is_no_crash() -> None:
    spikes, voltage = LIF()(torch.randn(3, 0, 5), return_state=True)
    assert spikes.shape == (3, 0, 5)
    assert voltage.shape == (0, 5)


def test_threads_do_not_change_a_bit() -> None:
    current, grad = torch.randn(4, 300_000), torch.randn(4, 300_000)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        neuron = PLIF()
        x = current.clone().requires_grad_()
        spikes = neuron(x)
        results.append([spikes.detach(), *torch.autograd.grad(spikes, [x, neuron.gain_logit], grad)])
    torch.set_num_threads(1)
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)
