"""Surrogates: the derivative they claim, and Θ(0) = 1."""

import pytest
import torch

from spikformer.neurons import spike, surrogate_gradient

pytestmark = pytest.mark.core

X = torch.linspace(-3, 3, 61, dtype=torch.float64)


def test_sigmoid_gradient_is_the_derivative_of_the_sigmoid() -> None:
    x = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad(torch.sigmoid(4 * x).sum(), x)
    assert torch.allclose(surrogate_gradient("sigmoid", X, 4.0), expected, atol=1e-14)


def test_arctan_gradient_is_the_derivative_of_the_arctangent() -> None:
    x = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad((torch.atan(torch.pi / 2 * 2 * x) / torch.pi).sum(), x)
    assert torch.allclose(surrogate_gradient("arctan", X, 2.0), expected, atol=1e-14)


@pytest.mark.parametrize("surrogate", ["sigmoid", "arctan"])
def test_spike_is_a_step_forward_and_a_surrogate_backward(surrogate: str) -> None:
    x = torch.tensor([-1.0, -1e-9, 0.0, 1e-9, 2.0], dtype=torch.float64, requires_grad=True)
    spikes = spike(x, surrogate, 4.0)
    assert spikes.tolist() == [0, 0, 1, 1, 1]
    (grad,) = torch.autograd.grad(spikes.sum(), x)
    assert torch.allclose(grad, surrogate_gradient(surrogate, x.detach(), 4.0), rtol=1e-14, atol=0)
