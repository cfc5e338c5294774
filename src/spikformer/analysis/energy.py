"""The energy auditor: what one inference costs, layer by layer, by every convention in use.

    report = sf.measure_energy(model, batches)
    report.energy_mj("paper"), report.energy_mj("strict"), report.twin_energy_mj

An estimate by operation counts, as all published figures of the field are: no chip was measured. Three ways to count
are in use, `CONVENTIONS`; docs/energy.md compares them. `paper` is App. C.2: SOPs = fr · T · FLOPs.

A layer is one product or two: a convolution multiplies its input with its weights, attention multiplies Q, K and V in
one of two orders. `strict` and `entrywise` count what really meets in those products; `paper` is a formula of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from torch import Tensor, nn

from spikformer.analysis.firing import FiringReport, measure_firing
from spikformer.analysis.operations import LayerOperations, Order, Runtime, count_operations
from spikformer.errors import FieldError
from spikformer.models import SpikingNetwork
from spikformer.models.inspection import unwrap
from spikformer.paper import AC_PJ, MAC_PJ

Convention = Literal["paper", "strict", "entrywise"]
CONVENTIONS: dict[Convention, str] = {
    "paper": "Operations are firing rate × time steps × MACs of a layer, so an input of 3 costs three accumulates. "
    "Only the first convolution multiplies, and attention whose factors are not spikes.",
    "strict": "A layer accumulates only if all that enters it is 0 or 1. One larger input, such as a residual sum of "
    "2, makes every operation of the layer a MAC.",
    "entrywise": "Input by input: a 0 costs nothing, a 1 an accumulate, anything else a MAC.",
}
"""What each counts, as reports explain it."""
FirstConv = Literal["every_step", "once"]
"""Whether a static image's first convolution is computed at every step, as all count it, or once, as it could be."""
_PJ_IN_MJ = 1e9


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


@dataclass(frozen=True)
class Constants:
    """Picojoules at 45 nm (Horowitz, ISSCC 2014): of operations on 32-bit floats, as in the paper, and of memory.

    The paper and most of the field leave memory out. A 32-bit word of a 32 KB memory takes 10 pJ (20 for 64 bits).
    Every operation reads its weight, every neuron reads and writes its membrane at every step; nothing is kept in a
    register between them, so it is an upper bound for both networks.
    """

    mac_pj: float = MAC_PJ
    ac_pj: float = AC_PJ
    weight_pj: float = 10.0
    membrane_pj: float = 10.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 <= value < float("inf"):
                raise FieldError(name, f"{name} must be a finite number of picojoules, at least 0, got {value!r}.")


HOROWITZ_45NM = Constants()


@dataclass(frozen=True)
class EnergyReport:
    """Means over `num_samples` samples of one inference of `time_steps` steps."""

    layers: tuple[Layer, ...]
    twin_macs: int
    """Of the ANN twin: the same layers once, with the two products of softmax attention."""
    num_neurons: int
    time_steps: int
    num_samples: int
    constants: Constants = HOROWITZ_45NM
    runtime: Runtime = "torch"
    """By whose rule the products of attention are ordered, which matters to `strict` and `entrywise`."""

    def operations(self, convention: Convention = "paper", first_conv: FirstConv = "every_step") -> Operations:
        total = Operations()
        for layer in self.layers:
            total = total.plus(layer.operations(convention, first_conv))
        return total

    def energy_mj(self, convention: Convention = "paper", first_conv: FirstConv = "every_step") -> float:
        return self.energy_pj(self.operations(convention, first_conv)) / _PJ_IN_MJ

    def energy_pj(self, operations: Operations) -> float:
        return operations.macs * self.constants.mac_pj + operations.acs * self.constants.ac_pj

    @property
    def twin_energy_mj(self) -> float:
        return self.twin_macs * self.constants.mac_pj / _PJ_IN_MJ

    def memory_mj(self, convention: Convention = "paper", first_conv: FirstConv = "every_step") -> float:
        """What moving weights and membranes adds."""
        weights = sum(self.operations(convention, first_conv)) * self.constants.weight_pj
        membranes = 2 * self.num_neurons * self.time_steps * self.constants.membrane_pj
        return (weights + membranes) / _PJ_IN_MJ

    @property
    def twin_memory_mj(self) -> float:
        """The same for the twin, which has weights and no membranes."""
        return self.twin_macs * self.constants.weight_pj / _PJ_IN_MJ

    @property
    def attention_order(self) -> Order | None:
        """In which order Q, K and V are multiplied; None where nothing mixes. All blocks have the same sizes."""
        return next((layer.order for layer in self.layers if layer.order), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, every convention side by side."""
        return {
            "num_samples": self.num_samples,
            "time_steps": self.time_steps,
            "constants": asdict(self.constants),
            "runtime": self.runtime,
            "attention_order": self.attention_order,
            "energy_mj": _by_convention(self.energy_mj),
            "operations": _by_convention(lambda *choice: self.operations(*choice)._asdict()),
            "twin": {"macs": self.twin_macs, "energy_mj": self.twin_energy_mj},
            "layers": [self._layer_to_dict(layer) for layer in self.layers],
        }

    def _layer_to_dict(self, layer: Layer) -> dict[str, Any]:
        names = ("name", "kind", "macs", "num_steps", "mean_input", "density", "binary")
        energy = _by_convention(lambda *choice: self.energy_pj(layer.operations(*choice)))
        return {name: getattr(layer, name) for name in names} | {"energy_pj": energy}


def _by_convention(figure: Callable[[Convention, FirstConv], Any]) -> dict[str, dict[str, Any]]:
    return {
        convention: {first_conv: figure(convention, first_conv) for first_conv in get_args(FirstConv)}
        for convention in CONVENTIONS
    }


def energy_figure(convention: Convention) -> str:
    """The name of an energy among the figures of a run."""
    return "energy_mj" if convention == "paper" else f"{convention}_energy_mj"


def measure_energy(
    model: nn.Module,
    batches: Iterable[Tensor],
    constants: Constants = HOROWITZ_45NM,
    on_batch: Callable[[int], None] = lambda _: None,
    *,
    runtime: Runtime = "torch",
) -> EnergyReport:
    """Run batches, images [B, C, H, W] or frames [T, B, C, H, W], and count; `on_batch` is for a progress bar."""
    model = unwrap(model, "measure_energy")
    return audit(model, measure_firing(model, batches, on_batch), constants, runtime=runtime)


def audit(
    model: SpikingNetwork, firing: FiringReport, constants: Constants = HOROWITZ_45NM, *, runtime: Runtime = "torch"
) -> EnergyReport:
    """The energy of a model that fired like this."""
    counted = count_operations(model, firing.image_size)
    return EnergyReport(
        layers=tuple(
            _attention(layer, firing, runtime) if layer.products else _weighted(layer, firing) for layer in counted
        ),
        twin_macs=sum(layer.twin_macs for layer in counted),
        num_neurons=sum(firing.num_neurons.values()),
        time_steps=firing.time_steps,
        num_samples=firing.num_samples,
        constants=constants,
        runtime=runtime,
    )


def _weighted(layer: LayerOperations, firing: FiringReport) -> Layer:
    """A convolution or linear layer: one product, of what enters it with its weights."""
    seen = firing.inputs[layer.name]
    is_first = layer.name == next(iter(firing.inputs))
    reads_membranes = layer.kind == "conv" and bool(seen.num_fractions.any())  # whose mean is not a firing rate
    product = Product(layer.macs, float(seen.density.mean()), float(seen.ones.mean()), seen.binary)
    return Layer(
        name=layer.name,
        kind=layer.kind,
        num_steps=firing.time_steps,
        products=(product,),
        mean_input=float(seen.mean.mean()),
        binary=seen.binary,
        spiking=bool(firing.outputs) and not is_first and not reads_membranes,
        paper_macs=layer.macs,
        once=is_first and firing.static,
    )


def _attention(layer: LayerOperations, firing: FiringReport, runtime: Runtime) -> Layer:
    """Q Kᵀ V: two products, of which one has the result of the other for a factor."""
    seen = firing.attentions[layer.name.removesuffix(".mixing")]
    query, key, value = seen.binary
    order = layer.orders[runtime]
    # Which of the two products has spikes for a factor, and so only adds.
    binary = (query or key, value) if order == "query_key_first" else (key or value, query)
    coincidences = getattr(seen, order).sum(0) / firing.num_samples
    products = []
    for macs, met, adds in zip(layer.products[order], coincidences, binary, strict=True):
        density = float(met) / (macs * firing.time_steps)
        products.append(Product(macs, density, density if adds else 0.0, adds))
    return Layer(
        name=layer.name,
        kind="attention",
        num_steps=firing.time_steps,
        products=tuple(products),
        mean_input=float(sum(rate.mean() for rate in seen.rates.values()) / 3),
        binary=query and key and value,
        spiking=query and key and value,
        paper_macs=layer.products["query_key_first"][0],
        order=order,
    )
