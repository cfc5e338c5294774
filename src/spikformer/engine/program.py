"""Program: what the engine runs, a list of ops over numbered buffers.

Buffer 0 is the input, and op i writes buffer i + 1, once: a program reads from top to bottom like a page. Nothing here
knows an architecture, torch or an instruction set; `lowering` writes programs, `file` keeps them, the native core and
`reference` run them.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from spikformer.messages import shown

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
        _expect(self.weights.ndim == 4 and 0 not in self.weights.shape, "weights must be [outputs, k, k, channels]")
        outputs, kernel, columns, channels = self.weights.shape
        _expect(kernel == columns and kernel in (1, 3), f"its window must be 1×1 or 3×3, is {kernel}×{columns}")
        _expect(self.bias.shape == (outputs,), f"bias must have {outputs} entries, has shape {list(self.bias.shape)}")
        _expect(channels == x.channels, f"it expects {channels} channels, gets {x.channels}")
        _expect(x.kind in ("pixels", "spikes", "counts"), f"a product cannot read {x.kind}")
        _expect(x.kind != "counts" or kernel == 1, "a 3×3 window cannot read counts")
        padded = channels if x.kind == "pixels" else -(-channels // 64) * 64
        _expect(kernel**2 * padded <= MAX_INPUTS, f"it has more than {MAX_INPUTS:,} inputs")
        return Value("floats", outputs, x.height, x.width, static=x.static)

    def macs(self, *inputs: Value) -> int:
        return inputs[0].positions * self.weights.size


@dataclass(frozen=True, eq=False)
class Fire(Op):
    """A neuron in every place of a map of currents, spikes or a residual stream. The only op with state."""

    neuron: Neuron

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        _expect(x.kind != "pixels", f"a neuron cannot read {x.kind}")
        return replace(x, kind="spikes", static=False, largest=1)


@dataclass(frozen=True, eq=False)
class Pool(Op):
    """Max-pool of a map, 3×3 with stride 2 and padding 1: height and width are halved."""

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        _expect(x.kind in ("floats", "spikes"), f"a pool cannot read {x.kind}")
        _expect(x.height % 2 == 0 and x.width % 2 == 0, f"a pool halves even sizes, not {x.height}×{x.width}")
        return replace(x, height=x.height // 2, width=x.width // 2)


@dataclass(frozen=True, eq=False)
class PoolTokens(Op):
    """Max-pool of spikes along the tokens, in the order of rows; an odd kernel with stride 1 keeps their number."""

    kernel: int

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        _expect(x.kind == "spikes", f"a pool along tokens cannot read {x.kind}")
        _expect(self.kernel % 2 == 1 and 1 <= self.kernel <= 2**31, f"its kernel must be odd, is {self.kernel}")
        return x


@dataclass(frozen=True, eq=False)
class Add(Op):
    """A residual sum: of floats, or of spikes onto spikes or counts."""

    arity = 2

    def infer(self, *inputs: Value) -> Value:
        stream, x = inputs
        shapes = [(value.channels, value.height, value.width) for value in inputs]
        _expect(shapes[0] == shapes[1], f"it adds maps of one shape, not {shapes[0]} and {shapes[1]}")
        if stream.kind == x.kind == "floats":
            return replace(stream, static=stream.static and x.static)
        _expect(
            stream.kind in ("spikes", "counts") and x.kind == "spikes",
            f"it adds floats, or spikes onto spikes or counts, not {x.kind} onto {stream.kind}",
        )
        largest = stream.largest + 1
        _expect(largest <= MAX_COUNT, f"residual sums are counted in bytes, this one may exceed {MAX_COUNT}")
        return replace(stream, kind="counts", largest=largest)


@dataclass(frozen=True, eq=False)
class Attend(Op):
    """Q Kᵀ V · scale of spikes, head by head and step by step: the currents of the neuron after it."""

    num_heads: int
    scale: float

    arity = 3

    def infer(self, *inputs: Value) -> Value:
        query, key, value = inputs
        _expect(query == key == value, "Q, K and V must have one shape")
        _expect(value.kind == "spikes", f"attention multiplies spikes, not {value.kind}")
        _expect(
            self.num_heads >= 1 and value.channels % self.num_heads == 0,
            f"its {self.num_heads} heads do not divide {value.channels} channels",
        )
        _expect(abs(self.scale) <= MAX_CONSTANT, f"its scale must be at most {MAX_CONSTANT:,.0f}, is {self.scale}")
        most_tokens = MAX_ATTENTION // (value.channels // self.num_heads)
        _expect(
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
        _expect(self.weights.ndim == 2 and 0 not in self.weights.shape, "weights must be [classes, channels]")
        classes, channels = self.weights.shape
        _expect(self.bias.shape == (classes,), f"bias must have {classes} entries, has shape {list(self.bias.shape)}")
        _expect(channels == x.channels, f"it expects {channels} channels, gets {x.channels}")
        _expect(x.kind in ("counts", "floats"), f"a readout cannot read {x.kind}")
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


@dataclass(frozen=True, eq=False)
class Program:
    """Ops in the order they run, and the input they take; checked when it is made."""

    ops: tuple[Op, ...]
    in_channels: int
    time_steps: int
    """Steps for which a static image is repeated."""
    image_size: tuple[int, int] | None
    """Height and width; None takes any multiple of `patch_size`."""
    patch_size: int = 1

    def __post_init__(self) -> None:
        _expect(bool(self.ops) and isinstance(self.ops[-1], ReadOut), "a program ends in a readout")
        names = [op.name for op in self.ops]
        _expect(len(set(names)) == len(names), "ops have different names")
        for index, op in enumerate(self.ops):
            wrong = len(op.inputs) != op.arity or not all(0 <= number <= index for number in op.inputs)
            _expect(not wrong, f"{op.name}: it reads buffers {list(op.inputs)}, which are not written yet")
            for name in op.arrays:
                array = getattr(op, name)
                _expect(array.dtype == np.float32, f"{op.name}: {name} must be float32, is {array.dtype}")
                inputs = array[0].size if array.ndim > 1 else 1
                largest = float(np.abs(array).max()) if array.size else 0.0
                _expect(largest * inputs <= MAX_SUM, f"{op.name}.{name} holds NaN or infinity, or is too large")
        size = self.image_size or (self.patch_size, self.patch_size)
        self.values(*size)

    @property
    def read_out(self) -> ReadOut:
        """The last op."""
        last = self.ops[-1]
        assert isinstance(last, ReadOut)  # see __post_init__
        return last

    @property
    def num_classes(self) -> int:
        return len(self.read_out.bias)

    def values(self, height: int, width: int, *, static: bool = True) -> list[Value]:
        """What every buffer holds for an input of that size: static images, or frames that change."""
        values = [Value("pixels", self.in_channels, height, width, static=static)]
        for op in self.ops:
            try:
                values.append(op.infer(*(values[number] for number in op.inputs)))
            except ValueError as error:
                raise ValueError(f"{op.name}: {error}") from None
        return values

    def macs(self, height: int, width: int) -> dict[str, int]:
        """Dense multiply-accumulates of each op that has a product, for one sample and one time step."""
        values = self.values(height, width)
        counts = ((op.name, op.macs(*(values[number] for number in op.inputs))) for op in self.ops)
        return {name: count for name, count in counts if count}

    def state_ops(self) -> Iterator[tuple[int, Fire]]:
        """The ops with state, each with the buffer it writes, in the order of their voltages."""
        for number, op in enumerate(self.ops, start=1):
            if isinstance(op, Fire):
                yield number, op


class Builder:
    """Writes a program op by op; each call returns the number of the buffer it writes."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def __call__(self, op: Op) -> int:
        self.ops.append(op)
        return len(self.ops)

    def convolve(self, name: str, x: int, weights: np.ndarray, bias: np.ndarray) -> int:
        return self(Convolve(name, (x,), weights, bias))

    def fire(self, name: str, x: int, neuron: Neuron) -> int:
        return self(Fire(name, (x,), neuron))

    def pool(self, name: str, x: int) -> int:
        return self(Pool(name, (x,)))

    def pool_tokens(self, name: str, x: int, kernel: int) -> int:
        return self(PoolTokens(name, (x,), kernel))

    def add(self, name: str, stream: int, x: int) -> int:
        return self(Add(name, (stream, x)))

    def attend(self, name: str, query: int, key: int, value: int, num_heads: int, scale: float) -> int:
        return self(Attend(name, (query, key, value), num_heads, scale))

    def read_out(self, name: str, x: int, weights: np.ndarray, bias: np.ndarray) -> int:
        return self(ReadOut(name, (x,), weights, bias))


def last_reads(ops: Iterable[Op]) -> dict[int, int]:
    """For every buffer that is read, the last op that does."""
    return {number: index for index, op in enumerate(ops) for number in op.inputs}


def _expect(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)
