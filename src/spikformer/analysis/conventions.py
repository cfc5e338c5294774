"""What a layer costs, and three ways to count it, each in use; docs/energy.md compares them.

    paper        an input x costs x accumulates (App. C.2: SOPs = fr · T · FLOPs); the first convolution, and floats in
                 attention, are multiply-accumulates
    strict       a product whose input is not binary throughout is multiply-accumulates, all of it
    entrywise    entry by entry: 0 costs nothing, 1 an accumulate, anything else a multiply-accumulate

A layer is one product or two: a convolution multiplies its input with its weights, attention multiplies Q, K and V in
one of two orders. `strict` and `entrywise` count what really meets in those products; `paper` is a formula of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Convention = Literal["paper", "strict", "entrywise"]
FirstConv = Literal["every_step", "once"]
"""Whether a static image's first convolution is computed at every step, as all count it, or once, as it could be."""
Order = Literal["query_key_first", "key_value_first"]
ORDER_FORMULAS: dict[Order, str] = {"query_key_first": "(Q Kᵀ) V", "key_value_first": "Q (Kᵀ V)"}
Runtime = Literal["torch", "engine"]
"""What runs the network, and by which rule it orders the products of attention."""


class Operations(NamedTuple):
    """Of one sample, over all its time steps."""

    macs: float = 0.0
    """Multiply-accumulates."""
    acs: float = 0.0
    """Accumulates: synaptic operations (SOPs)."""

    def plus(self, other: Operations) -> Operations:
        return Operations(self.macs + other.macs, self.acs + other.acs)


class Product(NamedTuple):
    """One matrix product of a layer. Shares are of its pairs of factors, over samples and steps."""

    macs: int
    """Pairs of factors in one step of one sample, zeros included."""
    density: float
    """The share of pairs without a zero."""
    ones: float
    """The share of pairs without a zero that need no multiplication, because a factor is exactly 1."""
    binary: bool
    """One of its factors is spikes throughout, so that the product only adds."""

    def operations(self, convention: Literal["strict", "entrywise"], num_steps: int) -> Operations:
        dense = self.macs * num_steps
        if convention == "strict":
            return Operations(acs=self.density * dense) if self.binary else Operations(macs=dense)
        return Operations(macs=(self.density - self.ones) * dense, acs=self.ones * dense)


@dataclass(frozen=True)
class Layer:
    """A convolution, a linear layer, or the product of Q, K and V."""

    name: str
    kind: Literal["conv", "linear", "attention"]
    num_steps: int
    products: tuple[Product, ...]
    mean_input: float
    """The paper's firing rate; of attention the mean of Q, K and V."""
    binary: bool
    """All that it reads is spikes; of attention Q, K and V."""
    spiking: bool
    """Whether the paper's formula for spikes applies: not to convolutions of pixels or membranes, floats in attention
    or an ANN."""
    paper_macs: int
    """What that formula multiplies the rate by, in one step; of attention N² D, half of its two products."""
    once: bool = False
    """Its input is the same at every step."""
    order: Order | None = None
    """Of attention, the order that is counted."""

    @property
    def macs(self) -> int:
        """Of one sample in one step, zeros included."""
        return sum(product.macs for product in self.products)

    @property
    def density(self) -> float:
        """The share of inputs that are not zero; of attention, of pairs that meet."""
        return sum(product.density * product.macs for product in self.products) / self.macs

    def operations(self, convention: Convention = "paper", first_conv: FirstConv = "every_step") -> Operations:
        num_steps = 1 if self.once and first_conv == "once" else self.num_steps
        if convention == "paper":
            dense = self.paper_macs * num_steps
            return Operations(acs=self.mean_input * dense) if self.spiking else Operations(macs=dense)
        total = Operations()
        for product in self.products:
            total = total.plus(product.operations(convention, num_steps))
        return total
