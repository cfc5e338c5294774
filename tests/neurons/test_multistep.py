"""The backward pass by hand against autograd, and the native core against its readable twin."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spikformer.analysis.verification import run_by_steps
from spikformer.neurons import IF, LIF, PLIF, SpikingNeuron, native, reference
from spikformer.neurons.reference import Dynamics

NEURONS = [
    LIF(),
    LIF(tau=1.5, v_reset=-0.25),
    LIF(tau=3.0, v_threshold=0.5, surrogate="arctan", alpha=2.0),
    IF(),
    IF(v_reset=0.125, surrogate="arctan"),
    PLIF(),
    PLIF(tau=3.0, v_reset=-0.5),
]


def gradients(run, neuron: SpikingNeuron, current, initial, weights):
    inputs = [current.clone().requires_grad_(), initial.clone().requires_grad_()]
    spikes, voltage = run(neuron, *inputs)
    loss = (spikes * weights[:-1]).sum() + (voltage * weights[-1]).sum()
    return [spikes, voltage, *torch.autograd.grad(loss, [*inputs, *neuron.parameters()])]


@pytest.mark.parametrize("neuron", NEURONS, ids=repr)
@pytest.mark.parametrize("kernels", ["native", "reference"])
def test_backward_by_hand_equals_autograd_through_the_steps(neuron, kernels, monkeypatch) -> None:
    if kernels == "reference":
        monkeypatch.setattr("spikformer.neurons.backend.native", None)
    neuron = neuron.double()
    current, weights = torch.randn(5, 4, 7).double() + 0.5, torch.randn(6, 4, 7).double()
    initial = torch.randn(4, 7).double() / 3
    by_hand = gradients(lambda n, x, v: n(x, v), neuron, current, initial, weights)
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
    assert torch.autograd.gradcheck(lambda x, v, *_: module(x, v)[1], (current, initial, *parameters))


@pytest.mark.parametrize("v_reset", [0.0, -0.25])
def test_gradcheck_of_the_surrogate(v_reset: float) -> None:
    """With the primitive of the surrogate in place of Θ in the last step, finite differences check ∂L/∂S, too."""
    neuron = LIF(v_reset=v_reset).double()
    current = (torch.randn(3, 9) + 0.5).double().requires_grad_()

    def smooth(x: torch.Tensor) -> torch.Tensor:
        _, voltage = neuron(x[:-1])
        membrane = voltage + (x[-1] - (voltage - v_reset)) / 2
        return torch.sigmoid(4 * (membrane - 1)).sum()

    (expected,) = torch.autograd.grad(smooth(current), current)
    (ours,) = torch.autograd.grad(neuron(current)[0][-1].sum(), current)
    assert torch.allclose(ours, expected, rtol=1e-12, atol=1e-12)


def test_only_the_membrane_is_kept_for_the_backward_pass() -> None:
    kept = []
    current = torch.randn(4, 1000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        LIF()(current)
    assert sum(x.numel() for x in kept) == current.numel()


def test_inference_keeps_nothing() -> None:
    spikes, voltage = LIF()(torch.randn(4, 10))
    assert spikes.grad_fn is None
    assert voltage.grad_fn is None


dynamics = st.builds(
    Dynamics,
    leaky=st.booleans(),
    v_threshold=st.sampled_from([0.5, 1.0]),
    v_reset=st.sampled_from([0.0, -0.25, 0.125]),
    surrogate=st.sampled_from(["sigmoid", "arctan"]),
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
        monkeypatch.setattr("spikformer.neurons.backend.native", None)
    current = torch.randn(2 * 3, 4, 5, 5).contiguous(memory_format=torch.channels_last).unflatten(0, (2, 3))
    spikes, _ = LIF()(current)
    assert spikes.stride() == current.stride()


def test_an_empty_batch_is_no_crash() -> None:
    spikes, voltage = LIF()(torch.randn(3, 0, 5))
    assert spikes.shape == (3, 0, 5)
    assert voltage.shape == (0, 5)


def test_threads_do_not_change_a_bit() -> None:
    current, grad = torch.randn(4, 300_000), torch.randn(4, 300_000)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        neuron = PLIF()
        x = current.clone().requires_grad_()
        spikes, _ = neuron(x)
        results.append([spikes.detach(), *torch.autograd.grad(spikes, [x, neuron.gain_logit], grad)])
    torch.set_num_threads(1)
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)
