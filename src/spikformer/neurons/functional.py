"""One time step of each neuron, as pure functions (paper Sec. 2), and the surrogate gradients of its spike.

    H = V + (X − (V − V_reset)) / τ        (IF: H = V + X)
    S = Θ(H − V_th)
    V = H (1 − S) + V_reset S              hard reset
    V = H − V_th S                         soft reset, `v_reset=None`, whose rest is 0

These are the definition. `multistep` computes the same over all steps at once, with a backward pass by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from spikformer.config import Surrogate
from spikformer.errors import FieldError

SurrogateGradient = Callable[[Tensor], Tensor]
"""H − V_th to the derivative that stands in for that of Θ."""


@dataclass(frozen=True)
class Dynamics:
    """What a neuron does, but for its time constant, which may be learnt.

    With a leak, H = V + (X − (V − V_reset)) · gain and gain = 1/τ; without one, H = V + X.
    """

    leaky: bool = True
    v_threshold: float = 1.0
    v_reset: float | None = 0.0
    surrogate: Surrogate | SurrogateGradient = "sigmoid"
    alpha: float = 4.0
    detach_reset: bool = True
    """Whether the S of the reset is a constant to the backward pass."""

    def __post_init__(self) -> None:
        if self.v_threshold <= self.rest:
            raise FieldError(
                "v_threshold",
                f"v_threshold must be above v_reset ({self.v_reset}), got {self.v_threshold}: "
                "a neuron at rest would never stop firing.",
            )
        if not callable(self.surrogate) and self.surrogate not in get_args(Surrogate):
            names = ", ".join(get_args(Surrogate))
            raise FieldError("surrogate", f"surrogate must be one of {names} or a function, got {self.surrogate!r}.")
        if self.alpha <= 0:
            raise FieldError("alpha", f"alpha must be above 0, got {self.alpha}.")

    @property
    def rest(self) -> float:
        """The voltage before the first step."""
        return 0.0 if self.v_reset is None else self.v_reset


def lif_step(
    current: Tensor,
    voltage: Tensor,
    *,
    tau: float | Tensor = 2.0,
    v_threshold: float = 1.0,
    v_reset: float | None = 0.0,
    surrogate: Surrogate | SurrogateGradient = "sigmoid",
    alpha: float = 4.0,
    detach_reset: bool = True,
) -> tuple[Tensor, Tensor]:
    """Leaky integrate-and-fire: returns the spikes and the voltage after them."""
    dynamics = Dynamics(True, v_threshold, v_reset, surrogate, alpha, detach_reset)
    return fire(charge(current, voltage, 1 / tau, dynamics), dynamics)


def if_step(
    current: Tensor,
    voltage: Tensor,
    *,
    v_threshold: float = 1.0,
    v_reset: float | None = 0.0,
    surrogate: Surrogate | SurrogateGradient = "sigmoid",
    alpha: float = 4.0,
    detach_reset: bool = True,
) -> tuple[Tensor, Tensor]:
    """Integrate-and-fire, without a leak: returns the spikes and the voltage after them."""
    dynamics = Dynamics(False, v_threshold, v_reset, surrogate, alpha, detach_reset)
    return fire(charge(current, voltage, 1.0, dynamics), dynamics)


def charge(current: Tensor, voltage: Tensor, gain: float | Tensor, dynamics: Dynamics) -> Tensor:
    """H: the membrane after input and leak, before a spike; `gain` is 1/τ."""
    if not dynamics.leaky:
        return voltage + current
    return voltage + (current - (voltage - dynamics.rest)) * gain


def fire(membrane: Tensor, dynamics: Dynamics) -> tuple[Tensor, Tensor]:
    """S and V of a membrane H."""
    spikes = spike(membrane - dynamics.v_threshold, dynamics.surrogate, dynamics.alpha)
    reset = spikes.detach() if dynamics.detach_reset else spikes
    if dynamics.v_reset is None:
        return spikes, membrane - dynamics.v_threshold * reset
    if dynamics.detach_reset:
        return spikes, torch.where(reset > 0, dynamics.v_reset, membrane)
    return spikes, membrane * (1 - reset) + dynamics.v_reset * reset


def spike(x: Tensor, surrogate: Surrogate | SurrogateGradient = "sigmoid", alpha: float = 4.0) -> Tensor:
    """Θ(x), with Θ(0) = 1, whose gradient is the surrogate; a named one has all derivatives of its smooth step.

    Made of PyTorch's own operations alone, so that torch.func, tracing and double backward see through it.
    """
    smooth = x * surrogate(x).detach() if callable(surrogate) else smooth_step(surrogate, x, alpha)
    return (x >= 0).to(x.dtype) + (smooth - smooth.detach())  # exactly zero is added


def surrogate_gradient(surrogate: Surrogate | SurrogateGradient, x: Tensor, alpha: float) -> Tensor:
    """What stands in for the derivative of Θ at x, which is zero wherever it exists."""
    return surrogate(x) if callable(surrogate) else _GRADIENTS[surrogate](x, alpha)


def smooth_step(surrogate: Surrogate, x: Tensor, alpha: float) -> Tensor:
    """A step from 0 to 1 whose derivative is `surrogate_gradient`."""
    return _SMOOTH[surrogate](x, alpha)


def sigmoid_gradient(x: Tensor, alpha: float) -> Tensor:
    """α σ(αx)(1 − σ(αx)): the paper's choice, with α = 4."""
    sigmoid = torch.sigmoid(alpha * x)
    return alpha * sigmoid * (1 - sigmoid)


def arctan_gradient(x: Tensor, alpha: float) -> Tensor:
    """(α/2) / (1 + (π/2 · αx)²): heavier tails than the sigmoid's, so distant neurons still learn."""
    return alpha / 2 / (1 + (math.pi / 2 * alpha * x) ** 2)


def sigmoid(x: Tensor, alpha: float) -> Tensor:
    """σ(αx), of slope α/4 at zero."""
    return torch.sigmoid(alpha * x)


def arctan(x: Tensor, alpha: float) -> Tensor:
    """atan(π/2 · αx)/π + 1/2, of slope α/2 at zero."""
    return torch.atan(math.pi / 2 * alpha * x) / math.pi + 0.5


_GRADIENTS = {"sigmoid": sigmoid_gradient, "arctan": arctan_gradient}
_SMOOTH = {"sigmoid": sigmoid, "arctan": arctan}


def empty_over_time(like: Tensor) -> Tensor:
    """Uninitialised, of `like`'s shape: steps outermost, each in the memory layout of `like` (channels last stays)."""
    step = like[0]
    strides = torch.empty_like(step).stride()
    return torch.empty_strided(like.shape, (step.numel(), *strides), dtype=like.dtype, device=like.device)
