"""Neurons as modules: they hold parameters, never state. Voltages come in and go out.

spikes, voltage = neuron(current)             from rest; currents and spikes are [T, …], the voltage […]
spikes, voltage = neuron(current, voltage)    going on where another call ended
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.neurons.dynamics import Dynamics
from spikformer.neurons.multistep import multistep
from spikformer.vocabulary import Surrogate


class SpikingNeuron(nn.Module):
    """What LIF, IF and PLIF share; they differ in `leaky` and in their gain."""

    leaky = True

    def __init__(
        self,
        v_threshold: float = 1.0,
        v_reset: float = 0.0,
        surrogate: Surrogate = "sigmoid",
        alpha: float = 4.0,
    ) -> None:
        super().__init__()
        self.dynamics = Dynamics(self.leaky, v_threshold, v_reset, surrogate, alpha)

    def gain(self) -> float | Tensor:
        """The share of the input current that reaches the membrane in one step: 1/τ."""
        return 1.0

    def forward(self, current: Tensor, voltage: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return multistep(current, voltage, self.gain(), self.dynamics)

    def at_rest(self, *shape: int, like: Tensor) -> Tensor:
        """The voltage before the first step, never narrower than float32."""
        return like.new_full(shape, self.dynamics.v_reset, dtype=torch.promote_types(like.dtype, torch.float32))

    def extra_repr(self) -> str:
        d = self.dynamics
        return f"v_threshold={d.v_threshold:g}, v_reset={d.v_reset:g}, {d.surrogate}(α={d.alpha:g})"


class IF(SpikingNeuron):
    """Integrate-and-fire: H = V + X."""

    leaky = False


class _LeakyNeuron(SpikingNeuron):
    """H = V + (X − (V − V_reset)) / τ."""

    def __init__(
        self,
        tau: float = 2.0,
        v_threshold: float = 1.0,
        v_reset: float = 0.0,
        surrogate: Surrogate = "sigmoid",
        alpha: float = 4.0,
    ) -> None:
        super().__init__(v_threshold, v_reset, surrogate, alpha)
        self._hold(tau)

    @abstractmethod
    def _hold(self, tau: float) -> None:
        """Keep τ, as a number or as a parameter."""


class LIF(_LeakyNeuron):
    """Leaky integrate-and-fire, with a fixed τ."""

    def _hold(self, tau: float) -> None:
        if tau < 1:
            raise ValueError(f"tau must be at least 1, got {tau}: a smaller one would overshoot its input.")
        self.tau = tau

    def gain(self) -> float:
        return 1 / self.tau

    def extra_repr(self) -> str:
        return f"tau={self.tau:g}, {super().extra_repr()}"


class PLIF(_LeakyNeuron):
    """Parametric LIF (Fang et al., 2021): one learnable τ per layer, kept above 1 by 1/τ = σ(w)."""

    def _hold(self, tau: float) -> None:
        if tau <= 1:
            raise ValueError(f"tau must be above 1 for PLIF, got {tau}: 1/τ = σ(w) never reaches 1.")
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
    """A plain function behind a neuron's interface, where a variant or the ANN twin wants floats: no voltage."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, current: Tensor, voltage: Tensor | None = None) -> tuple[Tensor, None]:
        return _ACTIVATIONS[self.name](current), None

    def at_rest(self, *shape: int, like: Tensor) -> None:
        return None

    def extra_repr(self) -> str:
        return self.name


def build_neuron(config: ModelConfig, v_threshold: float | None = None) -> SpikingNeuron | Activation:
    """The neuron that a config asks for, at its usual threshold unless another is given."""
    if config.neuron in ("relu", "gelu"):
        return Activation(config.neuron)
    threshold = config.v_threshold if v_threshold is None else v_threshold
    common = (threshold, config.v_reset, config.surrogate, config.surrogate_alpha)
    if config.neuron == "if":
        return IF(*common)
    return (PLIF if config.neuron == "plif" else LIF)(config.tau, *common)
