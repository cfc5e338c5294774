"""Step functions against the paper's equations, worked by hand."""

import pytest
import torch

from spikformer.neurons import if_step, lif_step

pytestmark = pytest.mark.core


def run(step, currents: list[float], **options: float) -> tuple[list[float], list[float]]:
    voltage = torch.tensor(options.get("v_reset", 0.0), dtype=torch.float64)
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
