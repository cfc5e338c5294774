"""All time steps of a neuron, forward and backward, in plain PyTorch: the readable twin of kernels/lif.cpp.

    ∂L/∂H[t] = ∂L/∂S[t] · Θ'(H[t] − V_th) + ∂L/∂V[t] · (1 − S[t])
    ∂L/∂X[t] = gain · ∂L/∂H[t]             ∂L/∂V[t−1] = (1 − gain · leak) · ∂L/∂H[t]

LIF and PLIF have gain = 1/τ and leak = 1, IF has gain = 1 and leak = 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spikformer.neurons.dynamics import Dynamics
from spikformer.neurons.steps import fire, lif_charge
from spikformer.neurons.surrogates import surrogate_gradient


def forward(
    current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics, keep_membrane: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Currents [T, …] to spikes [T, …], the last voltage […] and, if asked for, the membrane H [T, …]."""
    voltage = torch.full_like(current[0], dynamics.v_reset) if initial is None else initial
    spikes = empty_over_time(current)
    membranes = empty_over_time(current) if keep_membrane else None
    for step, x in enumerate(current):
        membrane = lif_charge(x, voltage, gain, dynamics.v_reset) if dynamics.leaky else voltage + x
        fired = membrane >= dynamics.v_threshold
        voltage = torch.where(fired, dynamics.v_reset, membrane)
        spikes[step] = fired
        if membranes is not None:
            membranes[step] = membrane
    return spikes, voltage, membranes


def by_steps(
    current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics
) -> tuple[Tensor, Tensor]:
    """Spikes [T, …] and the last voltage […] in PyTorch's operations alone, none in place, for autograd to keep."""
    voltage: Any = dynamics.v_reset if initial is None else initial  # a number, whatever the batch of a later run
    spikes = []
    for x in current.unbind():
        membrane = lif_charge(x, voltage, gain, dynamics.v_reset) if dynamics.leaky else voltage + x
        fired, voltage = fire(membrane, dynamics.v_threshold, dynamics.v_reset, dynamics.surrogate, dynamics.alpha)
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
        grad = grad_spikes[step] * theta + carried * (h < dynamics.v_threshold)
        grad_current[step] = grad * gain
        previous = _voltage_after(membrane[step - 1], dynamics) if step else initial
        rise = h - (dynamics.v_reset if previous is None else previous)
        grad_gain = grad_gain + (grad * rise).sum() / gain
        carried = grad * keep
    return grad_current, carried, grad_gain


def _voltage_after(membrane: Tensor, dynamics: Dynamics) -> Tensor:
    return torch.where(membrane >= dynamics.v_threshold, dynamics.v_reset, membrane)


def empty_over_time(like: Tensor) -> Tensor:
    """Uninitialised, of `like`'s shape: steps outermost, each in the memory layout of `like` (channels last stays)."""
    step = like[0]
    return torch.empty_strided(like.shape, (step.numel(), *_dense_strides(step)), dtype=like.dtype, device=like.device)


def _dense_strides(x: Tensor) -> tuple[int, ...]:
    return torch.empty_like(x).stride()
