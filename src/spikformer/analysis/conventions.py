"""Three ways to count what a spiking layer does, each in use; docs/energy.md compares them.

    paper        an input x costs x accumulates (App. C.2: SOPs = fr · T · FLOPs); the first convolution, and floats in
                 attention, are multiply-accumulates
    strict       an input that is not binary anywhere makes the whole layer multiply-accumulates
    entrywise    entry by entry: 0 costs nothing, 1 an accumulate, anything else a multiply-accumulate

Attention under `strict` and `entrywise` is counted by its true coincidences; under `paper` by the paper's rate formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Convention = Literal["paper", "strict", "entrywise"]
FirstConv = Literal["every_step", "once"]
"""Whether a still image's first convolution is computed at every step, as everybody counts, or once, as it could be."""


class Operations(NamedTuple):
    """Of one sample, over all its time steps."""

    macs: float = 0.0
    """Multiply-accumulates."""
    acs: float = 0.0
    """Accumulates: synaptic operations (SOPs)."""

    def plus(self, other: Operations) -> Operations:
        return Operations(self.macs + other.macs, self.acs + other.acs)


@dataclass(frozen=True)
class WeightedLayer:
    """A convolution or linear layer, and the mean of what enters it over samples and steps."""

    name: str
    kind: Literal["conv", "linear"]
    macs: int
    """Of one sample in one step."""
    num_steps: int
    mean_input: float
    density: float
    ones: float
    """The share of inputs that are exactly one."""
    binary: bool
    spiking: bool
    """Whether the paper's formula for spikes applies: not to the first convolution, nor to an ANN."""
    once: bool = False
    """Its input is the same at every step."""

    def operations(self, convention: Convention = "paper", first_conv: FirstConv = "every_step") -> Operations:
        dense = self.macs * (1 if self.once and first_conv == "once" else self.num_steps)
        if convention == "paper":
            return Operations(acs=self.mean_input * dense) if self.spiking else Operations(macs=dense)
        if convention == "strict":
            return Operations(acs=self.density * dense) if self.binary else Operations(macs=dense)
        return Operations(macs=(self.density - self.ones) * dense, acs=self.ones * dense)


@dataclass(frozen=True)
class AttentionLayer:
    """The product of Q, K and V, in the order it runs."""

    name: str
    macs: int
    """Of both products, for one sample in one step."""
    num_steps: int
    mean_input: float
    """Mean of Q, K and V: the paper's firing rate."""
    density: float
    """The share of pairs that coincide."""
    binary: bool
    """Q, K and V are spikes."""
    published_macs: int
    """N² D, what the paper counts for Q, K and V together; the two products are twice that."""
    products: tuple[tuple[int, float, bool], tuple[int, float, bool]]
    """Each product's MACs of a step, its coincidences of a sample, and whether one of its factors is spikes."""
    kind: Literal["attention"] = "attention"

    def operations(self, convention: Convention = "paper", first_conv: FirstConv = "every_step") -> Operations:
        if convention == "paper":
            dense = self.published_macs * self.num_steps
            return Operations(acs=self.mean_input * dense) if self.binary else Operations(macs=dense)
        counted = Operations()
        for macs, coincidences, has_spikes in self.products:
            if has_spikes:
                counted = counted.plus(Operations(acs=coincidences))
            else:
                counted = counted.plus(
                    Operations(macs=macs * self.num_steps if convention == "strict" else coincidences)
                )
        return counted


Layer = WeightedLayer | AttentionLayer
