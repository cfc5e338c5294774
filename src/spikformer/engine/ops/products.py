"""Ops that multiply: convolutions by events or densely, attention, and the readout."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spikformer.engine.ops.base import (
    MAX_ATTENTION,
    MAX_CONSTANT,
    MAX_INPUTS,
    Op,
    Value,
    check_heads,
    check_tokens,
    expect,
)

KERNELS = (1, 3, 5, 7)
STRIDES = (1, 2, 4)


@dataclass(frozen=True, eq=False)
class Convolve(Op):
    """x W + b, over windows of k×k with padding ⌊k/2⌋, k odd; weights [outputs, k, k, channels].

    With a stride s, height and width become ⌈H/s⌉ and ⌈W/s⌉: windows are centred at every s-th position.
    """

    weights: np.ndarray
    bias: np.ndarray
    stride: int = 1

    arrays = ("weights", "bias")

    @property
    def kernel(self) -> int:
        return self.weights.shape[1]

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(self.weights.ndim == 4 and 0 not in self.weights.shape, "weights must be [outputs, k, k, channels]")
        outputs, kernel, columns, channels = self.weights.shape
        expect(kernel == columns and kernel in KERNELS, f"its window must be 1×1 to 7×7 and odd, is {kernel}×{columns}")
        expect(self.stride in STRIDES, f"its stride must be 1, 2 or 4, is {self.stride}")
        expect(self.bias.shape == (outputs,), f"bias must have {outputs} entries, has shape {list(self.bias.shape)}")
        expect(channels == x.channels, f"it expects {channels} channels, gets {x.channels}")
        expect(x.kind in ("pixels", "spikes", "counts"), f"a product cannot read {x.kind}")
        padded = channels if x.kind == "pixels" else -(-channels // 64) * 64
        expect(kernel**2 * padded <= MAX_INPUTS, f"it has more than {MAX_INPUTS:,} inputs")
        height, width = (-(-side // self.stride) for side in (x.height, x.width))
        return Value("floats", outputs, height, width, static=x.static)

    def macs(self, *inputs: Value) -> int:
        return self.infer(*inputs).positions * self.weights.size


@dataclass(frozen=True, eq=False)
class DepthwiseConvolve(Op):
    """Each channel of spikes with a window of its own, stride 1, padding ⌊k/2⌋; weights [k, k, channels]."""

    weights: np.ndarray
    bias: np.ndarray

    arrays = ("weights", "bias")

    @property
    def kernel(self) -> int:
        return self.weights.shape[0]

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(self.weights.ndim == 3 and 0 not in self.weights.shape, "weights must be [k, k, channels]")
        kernel, columns, channels = self.weights.shape
        fits = kernel == columns and kernel in KERNELS[1:]
        expect(fits, f"its window must be 3×3 to 7×7 and odd, is {kernel}×{columns}")
        expect(self.bias.shape == (channels,), f"bias must have {channels} entries, has shape {list(self.bias.shape)}")
        expect(channels == x.channels, f"it expects {channels} channels, gets {x.channels}")
        expect(x.kind == "spikes", f"a depthwise convolution cannot read {x.kind}")
        return replace(x, kind="floats")

    def macs(self, *inputs: Value) -> int:
        return inputs[0].positions * self.weights.size


@dataclass(frozen=True, eq=False)
class Attend(Op):
    """Q Kᵀ V · scale of spikes, head by head and step by step: the currents of the neuron after it."""

    num_heads: int
    scale: float

    arity = 3

    def infer(self, *inputs: Value) -> Value:
        query, key, value = inputs
        expect(query == key == value, "Q, K and V must have one shape")
        expect(value.kind == "spikes", f"attention multiplies spikes, not {value.kind}")
        check_heads(value, self.num_heads)
        expect(abs(self.scale) <= MAX_CONSTANT, f"its scale must be at most {MAX_CONSTANT:,.0f}, is {self.scale}")
        most_tokens = MAX_ATTENTION // (value.channels // self.num_heads)
        expect(
            value.positions <= most_tokens,
            f"attention is exact for at most {most_tokens} tokens, got {value.positions}; use smaller images",
        )
        return replace(value, kind="floats")

    def macs(self, *inputs: Value) -> int:
        """Of the order with fewer; what the core takes is `query_key_first` in kernels/core/layout.hpp."""
        tokens, channels = inputs[0].positions, inputs[0].channels
        return 2 * tokens * channels * min(tokens, channels // self.num_heads)


@dataclass(frozen=True, eq=False)
class ReadOut(Op):
    """Logits: the mean over positions, times weights [classes, channels], plus bias. The last op of every program."""

    weights: np.ndarray
    bias: np.ndarray

    arrays = ("weights", "bias")

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(self.weights.ndim == 2 and 0 not in self.weights.shape, "weights must be [classes, channels]")
        classes, channels = self.weights.shape
        expect(self.bias.shape == (classes,), f"bias must have {classes} entries, has shape {list(self.bias.shape)}")
        expect(channels == x.channels, f"it expects {channels} channels, gets {x.channels}")
        expect(x.kind != "pixels", f"a readout cannot read {x.kind}")
        check_tokens(x)
        return Value("floats", classes, 1, 1, static=x.static)

    def macs(self, *inputs: Value) -> int:
        return self.weights.size
