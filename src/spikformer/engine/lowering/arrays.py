"""Trained arrays by the names of a state dict, with the arithmetic that every lowering needs.

A batch norm becomes part of the weights before it, in float64:

    BN(W x + b) = γ (W x + b − μ) / √(σ² + ε) + β = W' x + b',    W' = W γ / √(σ² + ε),  b' = (b − μ) γ / √(σ² + ε) + β
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spikformer.config import NetworkConfig
from spikformer.engine.ops import NeuronConstants
from spikformer.errors import FieldError

NEURONS = ("lif", "if", "plif")
NORM_EPS = 1e-5  # of every batch norm here; PyTorch's default

Folded = tuple[np.ndarray, np.ndarray]
"""Weights and bias in float32."""


class Arrays:
    """Arrays to take, each checked to be there; `check_used` raises for those that were not taken."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._unused = {name for name in arrays if not name.endswith(".num_batches_tracked")}

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, name: str, *shape: int) -> np.ndarray:
        """The array of that name, in float64."""
        if name not in self._arrays:
            raise FieldError(name, f"The weights lack {name}.")
        self._unused.discard(name)
        array = self._arrays[name]
        if array.shape != shape:
            raise FieldError(
                name, f"{name} should be {list(shape)}, is {list(array.shape)}; it does not fit its config."
            )
        return array.astype(np.float64)

    def check_used(self) -> None:
        if self._unused:
            raise FieldError(
                min(self._unused),
                f"The weights hold {min(self._unused)}, which the network of their config does not have.",
            )

    def neuron(self, name: str, config: NetworkConfig, v_threshold: float | None = None) -> NeuronConstants:
        """A config's neuron, at its usual threshold unless another is given."""
        if (
            config.neuron not in NEURONS
        ):  # floats between layers are not events, and neurons from outside have no constants here
            raise FieldError(
                "neuron",
                f"The engine runs on spikes of {', '.join(NEURONS)}, but this model's neuron is {config.neuron!r}: "
                "compile a model with one of those, or run this one in PyTorch.",
            )
        if config.v_reset is None:
            raise FieldError(
                "v_reset",
                "The engine resets to a voltage, but v_reset=None subtracts the threshold: compile a model with a "
                "v_reset, or run this one in PyTorch.",
            )
        gain, leak = 1 / config.tau, 1.0
        if config.neuron == "plif":
            gain = self.sigmoid(f"{name}.gain_logit")
        elif config.neuron == "if":
            gain, leak = 1.0, 0.0
        return NeuronConstants(gain, leak, config.v_threshold if v_threshold is None else v_threshold, config.v_reset)

    def sigmoid(self, name: str) -> float:
        """1 / (1 + e^−x) of a single parameter, as PyTorch rounds it: e^−x, then in the precision of the weights."""
        precision = np.float64 if name in self and self._arrays[name].dtype == np.float64 else np.float32
        with np.errstate(over="ignore"):
            decay = precision(np.exp(-self.take(name)))
        return float(1 / (precision(1) + decay))

    def linear(self, name: str, outputs: int, channels: int) -> Folded:
        """Weights [outputs, 1, 1, channels] and bias of a linear layer and the norm after it."""
        weights = self.take(f"{name}.linear.weight", outputs, channels)[:, None, None]
        return self._folded(name, f"{name}.linear", weights)

    def convolution(self, name: str, outputs: int, channels: int, kernel: int = 3) -> Folded:
        """Weights [outputs, kernel, kernel, channels] and bias of a convolution and the norm after it."""
        weights = self.take(f"{name}.conv.weight", outputs, channels, kernel, kernel)
        return self._folded(name, f"{name}.conv", weights.transpose(0, 2, 3, 1))

    def depthwise(self, name: str, channels: int, kernel: int) -> Folded:
        """Weights [kernel, kernel, channels] and bias of a depthwise convolution and the norm after it."""
        weights = self.take(f"{name}.conv.weight", channels, 1, kernel, kernel)
        folded, bias = self._folded(name, f"{name}.conv", weights[:, 0])
        return np.ascontiguousarray(folded.transpose(1, 2, 0)), bias

    def _folded(self, name: str, product: str, weights: np.ndarray) -> Folded:
        """Weights [outputs, …] and bias of a product and the norm after it."""
        outputs = len(weights)
        gamma, beta, mean, variance = (
            self.take(f"{name}.norm.{part}", outputs) for part in ("weight", "bias", "running_mean", "running_var")
        )
        with np.errstate(invalid="ignore"):  # of a negative variance: NaN, which as_float32 reports
            scale = gamma / np.sqrt(variance + NORM_EPS)
        shift = beta - mean * scale
        if f"{product}.bias" in self:
            shift = shift + self.take(f"{product}.bias", outputs) * scale
        return as_float32(weights * scale.reshape(-1, *[1] * (weights.ndim - 1))), as_float32(shift)


def as_float32(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(narrow).all():
        raise FieldError(
            "weights", "The weights hold NaN or infinity, or overflow in float32: their training went wrong."
        )
    return narrow
