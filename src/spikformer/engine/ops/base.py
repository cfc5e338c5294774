"""What a buffer holds, how large it may be, and what every op has.

    kind      what a buffer holds                              written by
    pixels    the input, floats [C, H, W] of each frame        the caller
    spikes    one bit a neuron                                 Fire; pools, max filters and masks of spikes
    counts    sums of spikes, 0 … 255                          Add, and pools of counts
    floats    currents and membrane streams                    products, means, sums over tokens or heads; Add and Pool

Every buffer is a map of positions (tokens are the positions of a map) for each of T time steps. A buffer that depends
on a static image alone is `static`: it is computed once for all steps, until a neuron reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from spikformer.errors import FieldError, shown

Kind = Literal["pixels", "spikes", "counts", "floats"]

MAX_COUNT = 255
"""Residual streams of spikes are bytes."""
MAX_INPUTS = 65_536
"""Inputs of one output of a product, each neighbour's channels padded to whole words of 64 bits: events are 16 bits."""
MAX_CONSTANT = 1e6
"""Of a neuron's constants and attention's scale; what is beyond is a mistake, or a malicious file."""
MAX_SUM = 1e24
"""Of a product, were all its inputs 1: far below float32's largest, so that no engine answers with NaN or infinity."""
MAX_ATTENTION = 2**24
"""Tokens times features of a head: Q Kᵀ V is exact in float32 up to here."""
MAX_TOKENS = (2**31 - 1) // MAX_COUNT
"""Positions whose spikes or counts are added up, in 32 bits; of spikes, so many are exact in float32, too."""


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

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.channels, self.height, self.width


@dataclass(frozen=True)
class NeuronConstants:
    """H = V + gain (X − leak (V − V_reset)), a spike where H ≥ V_th, then V = V_reset."""

    gain: float
    leak: float
    v_threshold: float
    v_reset: float

    def __post_init__(self) -> None:
        if not all(abs(constant) <= MAX_CONSTANT for constant in self.as_tuple()):  # NaN compares as False
            raise FieldError(
                "neuron", f"a neuron's constants must be at most {MAX_CONSTANT:,.0f}, got {shown(self.as_tuple())}"
            )
        if np.float32(self.v_threshold) <= np.float32(self.v_reset):  # as the engine compares
            raise FieldError(
                "neuron", f"a neuron's threshold must be above its rest, got {self.v_threshold} and {self.v_reset}"
            )

    def as_tuple(self) -> tuple[float, float, float, float]:
        return (self.gain, self.leak, self.v_threshold, self.v_reset)


def expect(holds: bool, problem: str, field: str = "op") -> None:
    """Raise FieldError with the problem unless it holds."""
    if not holds:
        raise FieldError(field, problem)


@dataclass(frozen=True, eq=False)
class Op(ABC):
    """One op of a program. `infer` says what its output is, and raises ValueError where the inputs do not fit."""

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


def check_heads(x: Value, num_heads: int) -> None:
    """Raise ValueError unless the channels are those of so many heads."""
    expect(num_heads >= 1 and x.channels % num_heads == 0, f"its {num_heads} heads do not divide {x.channels} channels")


def check_tokens(x: Value) -> None:
    """Raise ValueError for more positions than can be added up exactly."""
    expect(
        x.positions <= MAX_TOKENS,
        f"it adds up at most {MAX_TOKENS} positions exactly, got {x.positions}; use smaller images",
    )
