"""Neurons under torch.func, forward-mode autograd, dispatch modes and double backward: right values, or an error."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.neurons import IF, LIF, PLIF, SpikingNeuron

# torch.func.jvp and hessian load rules that are written in TorchScript, whose end PyTorch announces.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

NEURONS = [
    LIF(),
    LIF(tau=1.5, v_reset=-0.25, surrogate="arctan"),
    IF(),
    PLIF(tau=3.0),
    LIF(v_reset=None, detach_reset=False),
]


def currents(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64) + 0.7


def smooth(neuron: SpikingNeuron, current: torch.Tensor) -> torch.Tensor:
    """A loss of spikes and voltage with curvature of its own."""
    spikes, voltage = neuron(current, return_state=True)
    return (spikes.sum(0) ** 2).sum() + (voltage**3).sum()


@pytest.mark.parametrize("neuron", NEURONS, ids=repr)
def test_vmap_is_the_loop(neuron: SpikingNeuron) -> None:
    neuron, current = neuron.double(), currents(3, 4, 5)  # three samples of four steps
    spikes, voltage = vmap(lambda x: neuron(x, return_state=True))(current)
    for index, one in enumerate(current):
        expected = neuron(one, return_state=True)
        assert torch.equal(spikes[index], expected[0])
        assert torch.equal(voltage[index], expected[1])
    assert 0 < spikes.mean() < 1


def test_vmap_over_time_constants_is_the_loop() -> None:
    neuron, current = PLIF().double(), currents(4, 5)
    logits = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
    found = vmap(lambda logit: functional_call(neuron, {"gain_logit": logit}, (current,)))(logits)
    for index, logit in enumerate(logits):
        assert torch.equal(found[index], functional_call(neuron, {"gain_logit": logit}, (current,)))


@pytest.mark.parametrize("neuron", NEURONS, ids=repr)
def test_gradients_of_torch_func_are_those_of_backward(neuron: SpikingNeuron) -> None:
    neuron, current = neuron.double(), currents(4, 5)
    leaf = current.clone().requires_grad_()
    (expected,) = torch.autograd.grad(smooth(neuron, leaf), leaf)
    assert torch.allclose(grad(lambda x: smooth(neuron, x))(current), expected, rtol=1e-12)
    assert torch.allclose(jacrev(lambda x: smooth(neuron, x))(current), expected, rtol=1e-12)


@pytest.mark.parametrize("neuron", NEURONS, ids=repr)
def test_forward_mode_is_the_backward_pass_in_the_other_direction(neuron: SpikingNeuron) -> None:
    neuron, current, tangent = neuron.double(), currents(4, 5), currents(4, 5)
    gradient = grad(lambda x: smooth(neuron, x))(current)
    _, slope = jvp(lambda x: smooth(neuron, x), (current,), (tangent,))
    assert slope.item() == pytest.approx((gradient * tangent).sum().item(), rel=1e-12)
    with forward_ad.dual_level(), torch.no_grad():
        dual = smooth(neuron, forward_ad.make_dual(current, tangent))
        assert forward_ad.unpack_dual(dual).tangent.item() == pytest.approx(slope.item(), rel=1e-12)


@pytest.mark.parametrize("neuron", [LIF(v_threshold=50.0), IF(v_threshold=50.0)], ids=repr)
def test_second_derivatives_where_nothing_fires_equal_finite_differences(neuron: SpikingNeuron) -> None:
    current, step = currents(3, 2), 1e-5
    slope = grad(lambda x: smooth(neuron, x))
    found = hessian(lambda x: smooth(neuron, x))(current).view(6, 6)
    for index in range(6):
        shift = torch.zeros(6, dtype=torch.float64).index_fill(0, torch.tensor(index), step).view(3, 2)
        expected = (slope(current + shift) - slope(current - shift)) / (2 * step)
        assert torch.allclose(found[index], expected.flatten(), atol=1e-6)


def test_double_backward_raises_even_where_the_first_gradient_is_constant() -> None:
    current = currents(4, 5).requires_grad_()
    spikes = LIF()(current)
    (first,) = torch.autograd.grad(spikes.sum(), current, create_graph=True)
    with pytest.raises(RuntimeError, match=r"torch\.func"):
        first.square().sum().backward()


def test_a_graph_of_the_gradient_that_nobody_differentiates_is_fine() -> None:
    current = currents(4, 5).requires_grad_()
    gradients = []
    for create_graph in (False, True):
        spikes = LIF()(current)
        gradients.append(torch.autograd.grad(spikes.sum(), current, create_graph=create_graph)[0])
    assert torch.equal(*gradients)


def test_batched_gradients_of_autograd_are_the_loop() -> None:
    current, weights = currents(4, 5).requires_grad_(), torch.randn(3, 4, 5, dtype=torch.float64)
    spikes = LIF()(current)
    (found,) = torch.autograd.grad(spikes, current, weights, is_grads_batched=True, retain_graph=True)
    for index, weight in enumerate(weights):
        assert torch.equal(found[index], torch.autograd.grad(spikes, current, weight, retain_graph=True)[0])


def test_dispatch_modes_see_one_operation() -> None:
    current, other = currents(4, 5), currents(4, 5)
    graph = make_fx(LIF())(current)
    assert torch.equal(graph(other), LIF()(other))
    assert [node.target for node in graph.graph.nodes].count(torch.ops.spikformer.lif.default) == 1
    with FlopCounterMode(display=False):
        assert torch.equal(LIF()(current), graph(current))


def test_per_sample_gradients_of_a_network_are_the_loop() -> None:
    model = specimen(shrunk("spikformer_tiny_digits", depth=1, embed_dim=16, num_heads=2, time_steps=2))
    images, labels = frames_for(model.config, batch_size=3), torch.tensor([1, 0, 7])
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(weights: dict, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        logits = functional_call(model, weights, (image[None],))
        return torch.nn.functional.cross_entropy(logits, label[None])

    found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
    for index in range(3):
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(images[index, None]), labels[index, None]).backward()
        for name, parameter in model.named_parameters():
            assert torch.allclose(found[name][index], parameter.grad, rtol=1e-9, atol=1e-12), name
