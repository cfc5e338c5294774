"""What the engine computes, as plain arrays: every layer's weights with its norm folded in, and its neuron.

A plan knows nothing of torch: it is made from a model by `folding`, kept in a file by `files`, run by `native`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spikformer.card import ModelCard
from spikformer.config import ModelConfig

_ATTENTIONS = ("ssa", "random", "none")
_LARGEST_SUM = 1e24  # of a layer's inputs with all their weights: float32 holds a million steps of such sums
_LARGEST_CONSTANT = 1e6  # of a threshold, a rest or a scale


@dataclass(frozen=True)
class Neuron:
    """H = V + gain (X − leak (V − V_reset)), a spike where H ≥ V_th, then V = V_reset."""

    gain: float
    leak: float
    v_threshold: float
    v_reset: float

    def __post_init__(self) -> None:
        if not 0 <= self.gain <= 1 or self.leak not in (0, 1):
            raise ValueError(f"a neuron has gain {self.gain!r} and leak {self.leak!r}, expected 0 to 1, and 0 or 1.")
        if not all(abs(voltage) <= _LARGEST_CONSTANT for voltage in (self.v_threshold, self.v_reset)):
            raise ValueError(f"a neuron's threshold and rest must be finite, at most {_LARGEST_CONSTANT:,.0f}.")
        if np.float32(self.v_threshold) <= np.float32(self.v_reset):  # as the engine computes
            raise ValueError("a neuron has its threshold at or below its rest.")

    def as_tuple(self) -> tuple[float, float, float, float]:
        return (self.gain, self.leak, self.v_threshold, self.v_reset)


@dataclass(frozen=True)
class Layer:
    """SN(x W + b). Weights are [outputs, neighbours, inputs]: nine neighbours in a convolution, else one."""

    name: str
    weights: np.ndarray
    bias: np.ndarray
    neuron: Neuron

    def __post_init__(self) -> None:
        check_sums(self.name, self.weights, self.bias)


@dataclass(frozen=True)
class Block:
    """An encoder block. Without Q and K (`none`), the value alone goes on to `mixed`, the neuron after attention."""

    name: str
    query: Layer | None
    key: Layer | None
    value: Layer
    scale: float
    mixed: Neuron
    projection: Layer
    hidden: Layer
    output: Layer

    def __post_init__(self) -> None:
        if not abs(self.scale) <= _LARGEST_CONSTANT:
            raise ValueError(f"the scale of {self.name} must be finite, at most {_LARGEST_CONSTANT:,.0f}.")

    def layers(self) -> dict[str, Layer]:
        parts = ("query", "key", "value", "projection", "hidden", "output")
        return {part: layer for part in parts if (layer := getattr(self, part)) is not None}


@dataclass(frozen=True)
class Plan:
    """A whole network with spikes between all its layers. `card` is that of its weights."""

    config: ModelConfig
    stages: tuple[Layer, ...]
    position: Layer
    blocks: tuple[Block, ...]
    head_weights: np.ndarray
    head_bias: np.ndarray
    card: ModelCard

    def __post_init__(self) -> None:
        check_spiking(self.config)
        check_sums("head", self.head_weights, self.head_bias)

    def layers(self) -> list[Layer]:
        """Every layer with neurons, in the order they run."""
        inside = [layer for block in self.blocks for layer in block.layers().values()]
        return [*self.stages, self.position, *inside]


def check_sums(name: str, weights: np.ndarray, bias: np.ndarray) -> None:
    """Raise where a sum might exceed float32 after many steps, so that no engine answers with NaN or infinity."""
    for part, array, inputs in (("weights", weights, weights[0].size), ("bias", bias, 1)):
        if not max(float(array.max()), -float(array.min())) * inputs <= _LARGEST_SUM:  # NaN compares as False
            raise ValueError(f"{name}.{part} holds NaN or infinity, or is too large for float32.")


def check_spiking(config: ModelConfig) -> None:
    """Refuse what has floats between its layers: there are no events to be driven by."""
    if config.neuron in ("relu", "gelu"):
        raise ValueError(
            f"The engine runs on spikes, but this model's neuron is {config.neuron!r}: compile a spiking one, "
            "or run this one in PyTorch."
        )
    if config.attention not in _ATTENTIONS:
        raise ValueError(
            f"The engine multiplies spikes, but attention={config.attention!r} has floats in Q, K or V: "
            f"compile a model with {', '.join(_ATTENTIONS)}, or run this one in PyTorch."
        )
