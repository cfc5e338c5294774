"""Ops without weights: neurons, pools, sums and masks over the maps of a program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from spikformer.engine.ops.base import MAX_COUNT, NeuronConstants, Op, Value, check_heads, check_tokens, expect

MaskForm = Literal["same", "positions", "heads"]


@dataclass(frozen=True, eq=False)
class Fire(Op):
    """A neuron in every place of a map of currents, spikes or a residual stream. The only op with state."""

    neuron: NeuronConstants

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind != "pixels", f"a neuron cannot read {x.kind}")
        return replace(x, kind="spikes", static=False, largest=1)


@dataclass(frozen=True, eq=False)
class Pool(Op):
    """Max-pool of a map with stride 2, 3×3 with padding 1 or 2×2: height and width are halved."""

    kernel: int = 3

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind != "pixels", f"a pool cannot read {x.kind}")
        expect(self.kernel in (2, 3), f"a pool is 2×2 or 3×3, not {self.kernel}×{self.kernel}")
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
class Dilate(Op):
    """Max filter of spikes over rows and columns of the map: 3×3, stride 1, padding 1."""

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind == "spikes", f"a max filter cannot read {x.kind}")
        return x


@dataclass(frozen=True, eq=False)
class DilateHeads(Op):
    """The same filter over tokens n ± 1, in the order of rows, and channels j ± 1 of a head; not across heads."""

    num_heads: int

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind == "spikes", f"a max filter cannot read {x.kind}")
        check_heads(x, self.num_heads)
        return x


@dataclass(frozen=True, eq=False)
class Add(Op):
    """A residual sum: of floats, or of spikes onto spikes or counts."""

    arity = 2

    def infer(self, *inputs: Value) -> Value:
        stream, x = inputs
        expect(stream.shape == x.shape, f"it adds maps of one shape, not {stream.shape} and {x.shape}")
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
class And(Op):
    """x ∧ mask of spikes, or x ∧ ¬mask if it is `inverted`.

    The mask has x's shape; or one position and x's channels, for all positions; or x's positions and `num_heads`
    channels, each for the channels of its head.
    """

    num_heads: int = 1
    inverted: bool = False

    arity = 2

    def infer(self, *inputs: Value) -> Value:
        x, mask = inputs
        expect(x.kind == mask.kind == "spikes", f"it masks spikes by spikes, not {x.kind} by {mask.kind}")
        self.form(x, mask)
        return x

    def form(self, x: Value, mask: Value) -> MaskForm:
        if self.num_heads == 1 and mask.shape == x.shape:
            return "same"
        if self.num_heads == 1 and mask.shape == (x.channels, 1, 1):
            return "positions"
        check_heads(x, self.num_heads)
        expect(
            mask.shape == (self.num_heads, x.height, x.width),
            f"a mask of {x.shape} has that shape, one position, or one channel for each of {self.num_heads} heads, "
            f"not {mask.shape}",
        )
        return "heads"


@dataclass(frozen=True, eq=False)
class SumTokens(Op):
    """Σ over positions: how often each channel fires at a step, [C, 1, 1]. Exact."""

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind == "spikes", f"a sum over tokens cannot read {x.kind}")
        check_tokens(x)
        return replace(x, kind="floats", height=1, width=1)


@dataclass(frozen=True, eq=False)
class SumHeads(Op):
    """Σ over the channels of each head: how much a head fires at a position and step, [heads, H, W]. Exact."""

    num_heads: int

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind == "spikes", f"a sum over heads cannot read {x.kind}")
        check_heads(x, self.num_heads)
        return replace(x, kind="floats", channels=self.num_heads)


@dataclass(frozen=True, eq=False)
class Mean(Op):
    """The mean over positions, [C, 1, 1], rounded once: floats are added in float64, in the order of positions."""

    def infer(self, *inputs: Value) -> Value:
        (x,) = inputs
        expect(x.kind != "pixels", f"a mean cannot read {x.kind}")
        check_tokens(x)
        return replace(x, kind="floats", height=1, width=1, largest=1)
