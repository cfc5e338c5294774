"""Step functions against the paper's equations, worked by hand; surrogates against the derivative they claim."""

from typing import get_args

import pytest
import torch

from spikformer.config import Surrogate
from spikformer.neurons import if_step, lif_step, spike, surrogate_gradient
from spikformer.neurons.functional import smooth_step

pytestmark = pytest.mark.core


def run(step, currents: list[float], **options: float | None) -> tuple[list[float], list[float]]:
    voltage = torch.tensor(options.get("v_reset", 0.0) or 0.0, dtype=torch.float64)
    spikes, voltages = [], []
    for current in currents:
        spike, voltage = step(torch.tensor(current, dtype=torch.float64), voltage, **options)
        spikes.append(spike.item())
        voltages.append(voltage.item())
    return spikes, voltages


def test_lif_by_hand() -> None:
    # H = V + (X − V)/2: 0.75 · 1.375 fires · 0.25 · 1.0 is exactly the threshold and fires
    assert run(lif_step, [1.5, 2.0, 0.5, 1.75]) == ([0, 1, 0, 1], [0.75, 0, 0.25, 0])


def test_lif_by_hand_with_another_reset() -> None:
    # H = V + (X − (V + 0.5))/2 from V = −0.5: 1.0 fires, back to −0.5 · then 0.0
    assert run(lif_step, [3.0, 1.0], v_reset=-0.5) == ([1, 0], [-0.5, 0.0])


def test_if_by_hand() -> None:
    assert run(if_step, [0.5, 0.25, 0.25, 0.5]) == ([0, 0, 1, 0], [0.5, 0.75, 0, 0.5])


def test_tau_may_be_a_tensor() -> None:
    x, v = torch.randn(8), torch.randn(8)
    assert torch.equal(lif_step(x, v, tau=torch.tensor(4.0))[1], lif_step(x, v, tau=4.0)[1])


@pytest.mark.parametrize("step", [lif_step, if_step])
def test_the_reset_is_detached(step) -> None:
    x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    _, voltage = step(x, torch.tensor(0.0, dtype=torch.float64))
    (grad,) = torch.autograd.grad(voltage, x)
    assert grad == 0, "a neuron that fired forgets: V = H (1 − S) has no gradient, not through S either"


def test_soft_reset_by_hand() -> None:
    # H: 1.5 fires and leaves 0.5 · 0.25 + 0.5 = 0.75 · 1.0 fires and leaves 0
    assert run(lif_step, [3.0, 1.0, 1.25], v_reset=None) == ([1, 0, 1], [0.5, 0.75, 0.0])
    assert run(if_step, [2.5, 0.0], v_reset=None) == ([1, 1], [1.5, 0.5])


@pytest.mark.parametrize(("v_reset", "slope"), [(-0.5, -0.5 - 1.25), (None, -1.0)])
def test_an_attached_reset_has_the_gradient_of_its_spike(v_reset: float | None, slope: float) -> None:
    current = torch.tensor(1.25, dtype=torch.float64, requires_grad=True)
    _, voltage = if_step(current, torch.zeros((), dtype=torch.float64), v_reset=v_reset, detach_reset=False)
    (gradient,) = torch.autograd.grad(voltage, current)
    theta = surrogate_gradient("sigmoid", torch.tensor(0.25, dtype=torch.float64), 4.0)
    assert gradient.item() == pytest.approx((v_reset is None) + slope * theta.item())


X = torch.linspace(-3, 3, 61, dtype=torch.float64)


def test_sigmoid_gradient_is_the_derivative_of_the_sigmoid() -> None:
    x = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad(torch.sigmoid(4 * x).sum(), x)
    assert torch.allclose(surrogate_gradient("sigmoid", X, 4.0), expected, atol=1e-14)


def test_arctan_gradient_is_the_derivative_of_the_arctangent() -> None:
    x = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad((torch.atan(torch.pi / 2 * 2 * x) / torch.pi).sum(), x)
    assert torch.allclose(surrogate_gradient("arctan", X, 2.0), expected, atol=1e-14)


@pytest.mark.parametrize("surrogate", get_args(Surrogate))
def test_spike_is_a_step_forward_and_a_surrogate_backward(surrogate: Surrogate) -> None:
    x = torch.tensor([-1.0, -1e-9, 0.0, 1e-9, 2.0], dtype=torch.float64, requires_grad=True)
    spikes = spike(x, surrogate, 4.0)
    assert spikes.tolist() == [0, 0, 1, 1, 1]
    (grad,) = torch.autograd.grad(spikes.sum(), x)
    assert torch.allclose(grad, surrogate_gradient(surrogate, x.detach(), 4.0), rtol=1e-14, atol=0)


def test_a_surrogate_of_ones_own_is_the_gradient() -> None:
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(spike(x, lambda distance: 1 / (1 + distance.abs())).sum(), x)
    assert torch.allclose(gradient, 1 / (1 + X.abs()), rtol=1e-14)


@pytest.mark.parametrize("surrogate", get_args(Surrogate))
@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_the_gradient_is_the_slope_of_the_smooth_step(surrogate: Surrogate, alpha: float) -> None:
    x = torch.linspace(-3, 3, 41, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(smooth_step(surrogate, x, alpha).sum(), x)
    torch.testing.assert_close(slope, surrogate_gradient(surrogate, x, alpha).detach())


@pytest.mark.parametrize("surrogate", get_args(Surrogate))
def test_the_smooth_step_is_a_step_from_0_to_1(surrogate: Surrogate) -> None:
    x = torch.tensor([-1e9, 0.0, 1e9], dtype=torch.float64)
    torch.testing.assert_close(smooth_step(surrogate, x, 4.0), torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))
