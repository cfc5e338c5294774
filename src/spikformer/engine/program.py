"""Program: what the engine runs, a list of ops over numbered buffers.

Buffer 0 is the input, and op i writes buffer i + 1, once: a program reads from top to bottom like a page. Nothing here
knows an architecture, torch or an instruction set; `lowering` writes programs, `file` keeps them, the native core and
`interpreter` run them. `ops` says what a buffer can hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from spikformer.card import ModelCard
from spikformer.config import LARGEST_ACTIVATION, NetworkConfig
from spikformer.engine.ops import (
    MAX_SUM,
    OP_NAMES,
    Add,
    And,
    Attend,
    Convolve,
    DepthwiseConvolve,
    Dilate,
    DilateHeads,
    Fire,
    Mean,
    NeuronConstants,
    Op,
    Pool,
    PoolTokens,
    ReadOut,
    SumHeads,
    SumTokens,
    Value,
    expect,
)
from spikformer.errors import FieldError

_MOST_SIZES = 8  # that are remembered


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
    _values: dict[tuple[int, int, bool], list[Value]] = field(default_factory=dict, init=False, repr=False)
    """What `values` found: a stream asks at every start, and the answer takes longer than a small network's step."""

    def __post_init__(self) -> None:
        expect(bool(self.ops) and isinstance(self.ops[-1], ReadOut), "a program ends in a readout")
        names = [op.name for op in self.ops]
        expect(len(set(names)) == len(names), "ops have different names", "name")
        for index, op in enumerate(self.ops):
            wrong = len(op.inputs) != op.arity or not all(0 <= number <= index for number in op.inputs)
            expect(not wrong, f"{op.name}: it reads buffers {list(op.inputs)}, which are not written yet", op.name)
            for name in op.arrays:
                array = getattr(op, name)
                expect(
                    array.dtype == np.float32,
                    f"{op.name}: {name} must be float32, is {array.dtype}",
                    f"{op.name}.{name}",
                )
                inputs = array[0].size if array.ndim > 1 else 1
                largest = float(np.abs(array).max()) if array.size else 0.0
                expect(
                    largest * inputs <= MAX_SUM,
                    f"{op.name}.{name} holds NaN or infinity, or is too large",
                    f"{op.name}.{name}",
                )
        self.check_sample(self.image_size or (self.patch_size, self.patch_size), self.time_steps)

    def __repr__(self) -> str:
        """A line for each op: the buffer it writes, its kind and name, the buffers it reads, and what it writes."""
        height, width = self.image_size or (self.patch_size, self.patch_size)
        longest = max(len(op.name) for op in self.ops)
        lines = [f"Program of {self.in_channels}×{height}×{width}, T = {self.time_steps}"]
        for number, (op, value) in enumerate(zip(self.ops, self.values(height, width)[1:], strict=True), 1):
            read = " ".join(map(str, op.inputs))
            held = f"{value.kind} {value.channels}×{value.height}×{value.width}"
            lines.append(f"{number:4}  {OP_NAMES[type(op)]:20}{op.name:{longest + 2}}{read:12}{held}")
        return "\n".join(lines)

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
        if (known := self._values.get((height, width, static))) is not None:
            return known
        values = [Value("pixels", self.in_channels, height, width, static=static)]
        for op in self.ops:
            try:
                values.append(op.infer(*(values[number] for number in op.inputs)))
            except ValueError as error:
                raise FieldError(op.name, f"{op.name}: {error}") from None
        if len(self._values) >= _MOST_SIZES:
            self._values.clear()
        self._values[height, width, static] = values
        return values

    def check_sample(self, size: tuple[int, int], time_steps: int) -> None:
        """Raise ValueError where a sample of this size and so many steps does not fit, or would take too much."""
        largest = time_steps * max(value.positions * value.channels for value in self.values(*size))
        expect(
            largest <= LARGEST_ACTIVATION,
            f"an op has {largest:,} numbers, at most {LARGEST_ACTIVATION:,} may be",
            "time_steps",
        )

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

    def convolve(self, name: str, x: int, weights: np.ndarray, bias: np.ndarray, stride: int = 1) -> int:
        return self(Convolve(name, (x,), weights, bias, stride))

    def convolve_depthwise(self, name: str, x: int, weights: np.ndarray, bias: np.ndarray) -> int:
        return self(DepthwiseConvolve(name, (x,), weights, bias))

    def fire(self, name: str, x: int, neuron: NeuronConstants) -> int:
        return self(Fire(name, (x,), neuron))

    def pool(self, name: str, x: int, kernel: int = 3) -> int:
        return self(Pool(name, (x,), kernel))

    def pool_tokens(self, name: str, x: int, kernel: int) -> int:
        return self(PoolTokens(name, (x,), kernel))

    def dilate(self, name: str, x: int) -> int:
        return self(Dilate(name, (x,)))

    def dilate_heads(self, name: str, x: int, num_heads: int) -> int:
        return self(DilateHeads(name, (x,), num_heads))

    def add(self, name: str, stream: int, x: int) -> int:
        return self(Add(name, (stream, x)))

    def conjunction(self, name: str, x: int, mask: int, num_heads: int = 1, inverted: bool = False) -> int:
        """The op `And`, whose name is a keyword."""
        return self(And(name, (x, mask), num_heads, inverted))

    def sum_tokens(self, name: str, x: int) -> int:
        return self(SumTokens(name, (x,)))

    def sum_heads(self, name: str, x: int, num_heads: int) -> int:
        return self(SumHeads(name, (x,), num_heads))

    def mean(self, name: str, x: int) -> int:
        return self(Mean(name, (x,)))

    def attend(self, name: str, query: int, key: int, value: int, num_heads: int, scale: float) -> int:
        return self(Attend(name, (query, key, value), num_heads, scale))

    def read_out(self, name: str, x: int, weights: np.ndarray, bias: np.ndarray) -> int:
        return self(ReadOut(name, (x,), weights, bias))


@dataclass(frozen=True)
class Compiled:
    """A program, and what an engine file says besides."""

    program: Program
    config: NetworkConfig | None = None
    card: ModelCard = field(default_factory=lambda: ModelCard(architecture="program"))
    density_threshold: float | None = None
    """For the same bits on every machine; None leaves it to a measurement."""
