"""Trained arrays by the names of a state dict, with the arithmetic that every lowering needs.

A batch norm becomes part of the weights before it, in float64:

    BN(W x + b) = γ (W x + b − μ) / √(σ² + ε) + β = W' x + b',    W' = W γ / √(σ² + ε),  b' = (b − μ) γ / √(σ² + ε) + β
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spikformer.config import ModelConfig
from spikformer.engine.program import Builder, Neuron

NORM_EPS = 1e-5  # of every batch norm here; PyTorch's default


class Arrays:
    """Arrays to take, each checked to be there; `check_used` raises for those that nobody took."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._unused = {name for name in arrays if not name.endswith(".num_batches_tracked")}

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, name: str) -> np.ndarray:
        """In float64."""
        if name not in self._arrays:
            raise ValueError(f"The weights lack {name}.")
        self._unused.discard(name)
        return self._arrays[name].astype(np.float64)

    def check_used(self) -> None:
        if self._unused:
            raise ValueError(f"The weights hold {min(self._unused)}, which the network of their config does not have.")

    def neuron(self, name: str, config: ModelConfig, v_threshold: float | None = None) -> Neuron:
        """A config's neuron, at its usual threshold unless another is given."""
        gain, leak = 1 / config.tau, 1.0
        if config.neuron == "plif":
            gain = float(1 / (1 + np.exp(-self.take(f"{name}.gain_logit"))))
        elif config.neuron == "if":
            gain, leak = 1.0, 0.0
        return Neuron(gain, leak, config.v_threshold if v_threshold is None else v_threshold, config.v_reset)

    def folded(self, name: str, product: str) -> tuple[np.ndarray, np.ndarray]:
        """Weights [outputs, k, k, channels] and bias of a product and the norm after it, in float32."""
        weights = self.take(f"{name}.{product}.weight")
        weights = weights[:, None, None] if weights.ndim == 2 else weights.transpose(0, 2, 3, 1)
        scale = self.take(f"{name}.norm.weight") / np.sqrt(self.take(f"{name}.norm.running_var") + NORM_EPS)
        shift = self.take(f"{name}.norm.bias") - self.take(f"{name}.norm.running_mean") * scale
        if f"{name}.{product}.bias" in self:
            shift = shift + self.take(f"{name}.{product}.bias") * scale
        return as_float32(weights * scale[:, None, None, None]), as_float32(shift)


def spiking(build: Builder, name: str, x: int, folded: tuple[np.ndarray, np.ndarray], neuron: Neuron) -> int:
    """SN(BN(x W)): a product, and the neurons that read it."""
    return build.fire(f"{name}.neuron", build.convolve(name, x, *folded), neuron)


def as_float32(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(narrow).all():
        raise ValueError("The weights hold NaN or infinity, or overflow in float32: their training went wrong.")
    return narrow
