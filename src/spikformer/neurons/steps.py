"""One time step of each neuron, as pure functions (paper Sec. 2).

    H = V + (X − (V − V_reset)) / τ        (IF: H = V + X)
    S = Θ(H − V_th)
    V = H (1 − S) + V_reset S

These are the definition. `multistep` computes the same over all steps at once, with a backward pass by hand.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spikformer.neurons.surrogates import spike
from spikformer.vocabulary import Surrogate


def lif_step(
    current: Tensor,
    voltage: Tensor,
    *,
    tau: float | Tensor = 2.0,
    v_threshold: float = 1.0,
    v_reset: float = 0.0,
    surrogate: Surrogate = "sigmoid",
    alpha: float = 4.0,
) -> tuple[Tensor, Tensor]:
    """Leaky integrate-and-fire: returns the spikes and the voltage after them."""
    membrane = lif_charge(current, voltage, 1 / tau, v_reset)
    return fire(membrane, v_threshold, v_reset, surrogate, alpha)


def if_step(
    current: Tensor,
    voltage: Tensor,
    *,
    v_threshold: float = 1.0,
    v_reset: float = 0.0,
    surrogate: Surrogate = "sigmoid",
    alpha: float = 4.0,
) -> tuple[Tensor, Tensor]:
    """Integrate-and-fire, without a leak: returns the spikes and the voltage after them."""
    return fire(current + voltage, v_threshold, v_reset, surrogate, alpha)


def lif_charge(current: Tensor, voltage: Tensor, gain: float | Tensor, v_reset: float) -> Tensor:
    """H: the membrane after input and leak, before a spike; `gain` is 1/τ."""
    return voltage + (current - (voltage - v_reset)) * gain


def fire(
    membrane: Tensor, v_threshold: float, v_reset: float, surrogate: Surrogate, alpha: float
) -> tuple[Tensor, Tensor]:
    """S and V of a membrane H."""
    spikes = spike(membrane - v_threshold, surrogate, alpha)
    # The reset is detached: no gradient passes through S here.
    return spikes, torch.where(spikes.detach() > 0, v_reset, membrane)
