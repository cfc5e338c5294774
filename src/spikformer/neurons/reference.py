"""All time steps of a neuron, forward and backward, in plain PyTorch: the readable twin of kernels/core/lif.cpp.

    ∂L/∂H[t] = ∂L/∂S[t] · Θ'(H[t] − V_th) + ∂L/∂V[t] · ∂V[t]/∂H[t]
    ∂L/∂X[t] = gain · ∂L/∂H[t]             ∂L/∂V[t−1] = (1 − gain · leak) · ∂L/∂H[t]

LIF and PLIF have gain = 1/τ and leak = 1, IF has gain = 1 and leak = 0. ∂V/∂H is 1 − S after a hard reset and 1 after
a soft one; an attached reset adds (V_reset − H) Θ' or −V_th Θ'.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spikformer.neurons.functional import Dynamics, charge, empty_over_time, fire, surrogate_gradient


def forward(
    current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics, keep_membrane: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Currents [T, …] to spikes [T, …], the last voltage […] and, if asked for, the membrane H [T, …]."""
    voltage = torch.full_like(current[0], dynamics.rest) if initial is None else initial
    spikes = empty_over_time(current)
    membranes = empty_over_time(current) if keep_membrane else None
    for step, x in enumerate(current):
        membrane = charge(x, voltage, gain, dynamics)
        voltage = voltage_after(membrane, dynamics)
        spikes[step] = membrane >= dynamics.v_threshold
        if membranes is not None:
            membranes[step] = membrane
    return spikes, voltage, membranes


def by_steps(
    current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics
) -> tuple[Tensor, Tensor]:
    """Spikes [T, …] and the last voltage […] in PyTorch's operations alone, none in place, for autograd to keep."""
    voltage: Any = dynamics.rest if initial is None else initial  # a number, whatever the batch of a later run
    spikes = []
    for x in current.unbind():
        fired, voltage = fire(charge(x, voltage, gain, dynamics), dynamics)
        spikes.append(fired)
    return torch.stack(spikes), voltage


def backward(
    grad_spikes: Tensor,
    grad_voltage: Tensor | None,
    membrane: Tensor,
    initial: Tensor | None,
    gain: float | Tensor,
    dynamics: Dynamics,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the currents [T, …], the initial voltage […] and the gain (a scalar)."""
    keep = 1 - gain if dynamics.leaky else 1.0
    grad_current = empty_over_time(membrane)
    grad_gain = membrane.new_zeros(())
    carried = torch.zeros_like(membrane[0]) if grad_voltage is None else grad_voltage
    for step in reversed(range(len(membrane))):
        h = membrane[step]
        theta = surrogate_gradient(dynamics.surrogate, h - dynamics.v_threshold, dynamics.alpha)
        grad = grad_spikes[step] * theta + carried * _voltage_slope(h, theta, dynamics)
        grad_current[step] = grad * gain
        previous = voltage_after(membrane[step - 1], dynamics) if step else initial
        rise = h - (dynamics.rest if previous is None else previous)
        grad_gain = grad_gain + (grad * rise).sum() / gain
        carried = grad * keep
    return grad_current, carried, grad_gain


def voltage_after(membrane: Tensor, dynamics: Dynamics) -> Tensor:
    """V of a membrane H."""
    reset = membrane - dynamics.v_threshold if dynamics.v_reset is None else dynamics.v_reset
    return torch.where(membrane >= dynamics.v_threshold, reset, membrane)


def _voltage_slope(membrane: Tensor, theta: Tensor, dynamics: Dynamics) -> Tensor:
    """∂V/∂H."""
    slope = torch.ones_like(membrane) if dynamics.v_reset is None else (membrane < dynamics.v_threshold).to(theta.dtype)
    if dynamics.detach_reset:
        return slope
    jump = -dynamics.v_threshold if dynamics.v_reset is None else dynamics.v_reset - membrane
    return slope + jump * theta
