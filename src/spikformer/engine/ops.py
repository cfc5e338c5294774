"""Ops: what a program is made of, what each reads and writes, and how large it may be.

    kind      what a buffer holds                              written by
    pixels    the input, floats [C, H, W] of each frame        the caller
    spikes    one bit a neuron                                 Fire, and pools of spikes
    counts    sums of spikes, 0 … 255                          Add
    floats    currents and membrane streams                    Convolve, Attend, and sums and pools of floats

Every buffer is a map of positions (tokens are the positions of a map) for each of T time steps. A buffer that depends
on a static image alone is `static`: it is computed once for all steps, until a neuron reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from spikformer.validation import shown

Kind = Literal["pixels", "spikes", "counts", "floats"]

MAX_COUNT = 255
"""Residual streams of spikes are bytes."""
MAX_INPUTS = 65_536
"""Inputs of one output of a product, each neighbour's channels padded to whole words of 64 bits: events are 16 bits."""
MAX_CONSTANT = 1e6
"""Of a neuron's constants and attention's scale; what is beyond is a mistake, or a file that means harm."""
MAX_SUM = 1e24
"""Of a product, were all its inputs 1: far below float32's largest, so that no engine answers with NaN or infinity."""
MAX_ATTENTION = 2**24
"""Tokens times features of a head: Q Kᵀ V is exact in float32 up to here."""


@dataclass(frozen=True)
class Value:
    """What a buffer holds, for one size of input."""

    kind: Kind
    channels: int
    height: int
    width: int
    static: bool = False
    largest: int = 1
    """The largest count that can occur; 1 for spikes."""

    @property
    def positions(self) -> int:
        return self.height * self.width


@dataclass(frozen=True)
class Neuron:
    """H = V + gain (X − leak (V − V_reset)), a spike where H ≥ V_th, then V = V_reset."""

    gain: float
    leak: float
    v_threshold: float
    v_reset: float

    def __post_init__(self) -> None:
        if not all(abs(constant) <= MAX_CONSTANT for constant in self.as_tuple()):  # NaN compares as False
            raise ValueError(f"a neuron's constants must be at most {MAX_CONSTANT:,.0f}, got {shown(self.as_tuple())}")
        if np.float32(self.v_threshold) <= np.float32(self.v_reset):  # as the engine compares
            raise ValueError(f"a neuron's threshold must be above its rest, got {self.v_threshold} and {self.v_reset}")

    def as_tuple(self) -> tuple[float, float, float, float]:
        return (self.gain, self.leak, self.v_threshold, self.v_reset)


def expect(holds: bool, problem: str) -> None:
    """Raise ValueError with the problem unless it holds."""
    if not holds:
        raise ValueError(problem)


@dataclass(frozen=True, eq=False)
class Op(ABC):
    """One step of a program. `infer` says what its output is, and raises ValueError where the inputs do not fit."""

    name: str
    inputs: tuple[int, ...]

    arity: ClassVar[int] = 1
    arrays: ClassVar[tuple[str, ...]] = ()
    """Fields that hold arrays, always float32."""

    @abstractmethod
    def infer(self, *inputs: Value) -> Value: ...

    def macs(self, *inputs: Value) -> int:
        """Multiply-accumulates of one sample and one time step, were everything dense; 0 for ops without a product."""
        return 0


@dataclass(frozen=True, eq=False)
class Convolve(Op):
    """x W + b, over a window of 3×3 with padding 1 or over each position alone; weights [outputs, k, k, channels]."""

    weights: np.ndarray
    bias: np.ndarray

    arrays = ("weights", "bias")

    @property
    def kernel(self) -> int:
        return self.weights.shape[1]

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(self.weights.ndim == 4 and 0 not in self.weights.shape, "weights must be [outputs, k, k, channels]")
        outputs, kernel, columns, channels = self.weights.shape
        expect(kernel == columns and kernel in (1, 3), f"its window must be 1×1 or 3×3, is {kernel}×{columns}")
        expect(self.bias.shape == (outputs,), f"bias must have {outputs} entries, has shape {list(self.bias.shape)}")
        expect(channels == x.channels, f"it expects {channels} channels, gets {x.channels}")
        expect(x.kind in ("pixels", "spikes", "counts"), f"a product cannot read {x.kind}")
        expect(x.kind != "counts" or kernel == 1, "a 3×3 window cannot read counts")
        padded = channels if x.kind == "pixels" else -(-channels // 64) * 64
        expect(kernel**2 * padded <= MAX_INPUTS, f"it has more than {MAX_INPUTS:,} inputs")
        return Value("floats", outputs, x.height, x.width, static=x.static)

    def macs(self, *inputs: Value) -> int:
        return inputs[0].positions * self.weights.size


@dataclass(frozen=True, eq=False)
class Fire(Op):
    """A neuron in every place of a map of currents, spikes or a residual stream. The only op with state."""

    neuron: Neuron

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind != "pixels", f"a neuron cannot read {x.kind}")
        return replace(x, kind="spikes", static=False, largest=1)


@dataclass(frozen=True, eq=False)
class Pool(Op):
    """Max-pool of a map, 3×3 with stride 2 and padding 1: height and width are halved."""

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind in ("floats", "spikes"), f"a pool cannot read {x.kind}")
        expect(x.height % 2 == 0 and x.width % 2 == 0, f"a pool halves even sizes, not {x.height}×{x.width}")
        return replace(x, height=x.height // 2, width=x.width // 2)


@dataclass(frozen=True, eq=False)
class PoolTokens(Op):
    """Max-pool of spikes along the tokens, in the order of rows; an odd kernel with stride 1 keeps their number."""

    kernel: int

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind == "spikes", f"a pool along tokens cannot read {x.kind}")
        expect(self.kernel % 2 == 1 and 1 <= self.kernel <= 2**31, f"its kernel must be odd, is {self.kernel}")
        return x


@dataclass(frozen=True, eq=False)
class Add(Op):
    """A residual sum: of floats, or of spikes onto spikes or counts."""

    arity = 2

    def infer(self, *inputs: Value) -> Value:
        stream, x = inputs
        shapes = [(value.channels, value.height, value.width) for value in inputs]
        expect(shapes[0] == shapes[1], f"it adds maps of one shape, not {shapes[0]} and {shapes[1]}")
        if stream.kind == x.kind == "floats":
            return replace(stream, static=stream.static and x.static)
        expect(
            stream.kind in ("spikes", "counts") and x.kind == "spikes",
            f"it adds floats, or spikes onto spikes or counts, not {x.kind} onto {stream.kind}",
        )
        largest = stream.largest + 1
        expect(largest <= MAX_COUNT, f"residual sums are counted in bytes, this one may exceed {MAX_COUNT}")
        return replace(stream, kind="counts", largest=largest)


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
        expect(
            self.num_heads >= 1 and value.channels % self.num_heads == 0,
            f"its {self.num_heads} heads do not divide {value.channels} channels",
        )
        expect(abs(self.scale) <= MAX_CONSTANT, f"its scale must be at most {MAX_CONSTANT:,.0f}, is {self.scale}")
        most_tokens = MAX_ATTENTION // (value.channels // self.num_heads)
        expect(
            value.positions <= most_tokens,
            f"attention is exact for at most {most_tokens} tokens, got {value.positions}; use smaller images",
        )
        return replace(value, kind="floats")

    def macs(self, *inputs: Value) -> int:
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
        expect(x.kind in ("counts", "floats"), f"a readout cannot read {x.kind}")
        return Value("floats", classes, 1, 1, static=x.static)

    def macs(self, *inputs: Value) -> int:
        return self.weights.size


OPS: dict[str, type[Op]] = {
    "convolve": Convolve,
    "fire": Fire,
    "pool": Pool,
    "pool_tokens": PoolTokens,
    "add": Add,
    "attend": Attend,
    "read_out": ReadOut,
}
"""Every op by its name in files and in the native core."""
OP_NAMES = {kind: name for name, kind in OPS.items()}
