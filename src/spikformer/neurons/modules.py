"""Neurons as modules.

    spikes = neuron(current)                                        from rest; currents and spikes are [T, …]
    spikes, voltage = neuron(current, voltage, return_state=True)   from a voltage […] that an earlier call returned

They hold parameters, never state.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.config import NetworkConfig, Surrogate, add_choice
from spikformer.errors import FieldError
from spikformer.neurons.functional import Dynamics, SurrogateGradient
from spikformer.neurons.multistep import multistep

NeuronFactory = Callable[[], nn.Module]
"""What layers make their neurons with: `LIF`, or `partial(LIF, v_threshold=0.5)`."""


class SpikingNeuron(nn.Module):
    """What LIF, IF and PLIF share; they differ in `leaky` and in their gain.

    A neuron of your own derives from it: override `gain`, or `forward` with the same arguments and results.
    """

    leaky = True

    def __init__(
        self,
        v_threshold: float = 1.0,
        v_reset: float | None = 0.0,
        surrogate: Surrogate | SurrogateGradient = "sigmoid",
        alpha: float = 4.0,
        detach_reset: bool = True,
    ) -> None:
        super().__init__()
        self.dynamics = Dynamics(self.leaky, v_threshold, v_reset, surrogate, alpha, detach_reset)

    def gain(self) -> float | Tensor:
        """The share of the input current that reaches the membrane in one step: 1/τ."""
        return 1.0

    def forward(
        self, current: Tensor, voltage: Tensor | None = None, return_state: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Spikes [T, …], and on request the voltage […] after them; without one it starts from rest."""
        spikes, voltage = multistep(current, voltage, self.gain(), self.dynamics)
        return (spikes, voltage) if return_state else spikes

    def extra_repr(self) -> str:
        d = self.dynamics
        surrogate = "own surrogate" if callable(d.surrogate) else f"{d.surrogate}(α={d.alpha:g})"
        reset = "v_reset=None" if d.v_reset is None else f"v_reset={d.v_reset:g}"
        return f"v_threshold={d.v_threshold:g}, {reset}, {surrogate}" + ("" if d.detach_reset else ", attached reset")


class IF(SpikingNeuron):
    """Integrate-and-fire: H = V + X."""

    leaky = False


class _LeakyNeuron(SpikingNeuron):
    """H = V + (X − (V − V_reset)) / τ."""

    def __init__(
        self,
        tau: float = 2.0,
        v_threshold: float = 1.0,
        v_reset: float | None = 0.0,
        surrogate: Surrogate | SurrogateGradient = "sigmoid",
        alpha: float = 4.0,
        detach_reset: bool = True,
    ) -> None:
        super().__init__(v_threshold, v_reset, surrogate, alpha, detach_reset)
        self._hold(tau)

    @abstractmethod
    def _hold(self, tau: float) -> None:
        """Keep τ, as a number or as a parameter."""


class LIF(_LeakyNeuron):
    """Leaky integrate-and-fire, with a fixed τ."""

    def _hold(self, tau: float) -> None:
        if tau < 1:
            raise FieldError("tau", f"tau must be at least 1, got {tau}: a smaller one would overshoot its input.")
        self.tau = tau

    def gain(self) -> float:
        return 1 / self.tau

    def extra_repr(self) -> str:
        return f"tau={self.tau:g}, {super().extra_repr()}"


class PLIF(_LeakyNeuron):
    """Parametric LIF (Fang et al., 2021): one learnable τ per layer, kept above 1 by 1/τ = σ(w)."""

    def _hold(self, tau: float) -> None:
        if tau <= 1:
            raise FieldError("tau", f"tau must be above 1 for PLIF, got {tau}: 1/τ = σ(w) never reaches 1.")
        self.gain_logit = nn.Parameter(torch.tensor(-math.log(tau - 1)))

    def gain(self) -> Tensor:
        return torch.sigmoid(self.gain_logit)

    @property
    def tau(self) -> float:
        return 1 / self.gain().item()


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "gelu": F.gelu,
}


class Activation(nn.Module):
    """A function in a neuron's place, where a variant or the conventional (ANN) twin passes floats on."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, current: Tensor) -> Tensor:
        return _ACTIVATIONS[self.name](current)

    def extra_repr(self) -> str:
        return self.name


_NEURONS: dict[str, Callable[..., nn.Module]] = {
    "lif": LIF,
    "if": lambda tau, **dynamics: IF(**dynamics),
    "plif": PLIF,
    "relu": lambda **_: Activation("relu"),
    "gelu": lambda **_: Activation("gelu"),
}


def register_neuron(name: str, factory: Callable[..., nn.Module]) -> None:
    """Let configs name a neuron from outside the package.

    `factory` is called with the config's `tau, v_threshold, v_reset, surrogate, alpha, detach_reset` by keyword.
    """
    add_choice("neuron", name)
    _NEURONS[name] = factory


def neuron_factory(config: NetworkConfig, **changes: Any) -> NeuronFactory:
    """A function that makes the neuron of a config, with some of its constants changed: `v_threshold=0.5`."""
    constants = {
        "tau": config.tau,
        "v_threshold": config.v_threshold,
        "v_reset": config.v_reset,
        "surrogate": config.surrogate,
        "alpha": config.surrogate_alpha,
        "detach_reset": config.detach_reset,
    }
    return partial(_NEURONS[config.neuron], **constants | changes)
