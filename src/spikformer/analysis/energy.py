"""The energy auditor: what one inference costs, layer by layer, by every convention in use.

    report = sf.measure_energy(model, batches)
    report.energy_mj("paper"), report.energy_mj("strict"), report.twin_energy_mj

An estimate by operation counts, as all published figures of the field are: no chip was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, get_args

from torch import Tensor, nn

from spikformer.analysis.conventions import (
    AttentionLayer,
    Convention,
    FirstConv,
    Layer,
    Operations,
    WeightedLayer,
)
from spikformer.analysis.firing import FiringReport, measure_firing
from spikformer.analysis.operations import LayerOperations, count_operations
from spikformer.models import SpikingNetwork
from spikformer.models.inspection import unwrap

_PJ_IN_MJ = 1e9


@dataclass(frozen=True)
class Constants:
    """Picojoules of one operation in 32-bit floats on 45 nm silicon (Horowitz, ISSCC 2014), as the paper takes them."""

    mac_pj: float = 4.6
    ac_pj: float = 0.9

    def __post_init__(self) -> None:
        check_costs(self)


@dataclass(frozen=True)
class MemoryCosts:
    """Picojoules to read or write one 32-bit word, which the paper and most of the field leave out.

    By default from a 32 KB memory at 45 nm (Horowitz: 20 pJ for 64 bits). Every operation reads its weight, every
    neuron reads and writes its membrane at every step; nothing is kept in a register between them, so it is an upper
    bound for both networks.
    """

    weight_pj: float = 10.0
    membrane_pj: float = 10.0

    def __post_init__(self) -> None:
        check_costs(self)


def check_costs(costs: Constants | MemoryCosts) -> None:
    for name, value in asdict(costs).items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} must be a finite number of picojoules, at least 0, got {value!r}.")


HOROWITZ_45NM = Constants()
SRAM_32KB = MemoryCosts()


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

    def memory_mj(
        self,
        costs: MemoryCosts = SRAM_32KB,
        convention: Convention = "paper",
        first_conv: FirstConv = "every_step",
    ) -> float:
        """What moving weights and membranes adds."""
        updates = 2 * self.num_neurons * self.time_steps
        return (
            sum(self.operations(convention, first_conv)) * costs.weight_pj + updates * costs.membrane_pj
        ) / _PJ_IN_MJ

    def twin_memory_mj(self, costs: MemoryCosts = SRAM_32KB) -> float:
        """The same for the twin, which has weights and no membranes."""
        return self.twin_macs * costs.weight_pj / _PJ_IN_MJ

    def to_dict(self) -> dict[str, Any]:
        """Plain data, every convention side by side."""
        return {
            "num_samples": self.num_samples,
            "time_steps": self.time_steps,
            "constants": asdict(self.constants),
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
        for convention in get_args(Convention)
    }


def measure_energy(
    model: nn.Module,
    batches: Iterable[Tensor],
    constants: Constants = HOROWITZ_45NM,
    on_batch: Callable[[int], None] = lambda _: None,
) -> EnergyReport:
    """Run batches, images [B, C, H, W] or frames [T, B, C, H, W], and count; `on_batch` is for a bar."""
    model = unwrap(model, "measure_energy")
    firing = measure_firing(model, batches, on_batch)
    return audit(model, firing, constants, firing.image_size)


def audit(
    model: SpikingNetwork,
    firing: FiringReport,
    constants: Constants = HOROWITZ_45NM,
    image_size: tuple[int, int] | None = None,
) -> EnergyReport:
    """The energy of a model that fired like this."""
    counted = count_operations(model, image_size)
    layers = [_attention(layer, firing) if layer.products else _weighted(layer, firing) for layer in counted]
    return EnergyReport(
        layers=tuple(layers),
        twin_macs=sum(twin_macs(layer) for layer in counted),
        num_neurons=sum(firing.num_neurons.values()),
        time_steps=firing.time_steps,
        num_samples=firing.num_samples,
        constants=constants,
    )


def twin_macs(layer: LayerOperations) -> int:
    """Of the ANN twin's layer, whose softmax needs Q Kᵀ."""
    return sum(layer.products["query_key_first"]) if layer.products else layer.macs


def _weighted(layer: LayerOperations, firing: FiringReport) -> WeightedLayer:
    seen = firing.inputs[layer.name]
    is_first = layer.name == next(iter(firing.inputs))
    return WeightedLayer(
        name=layer.name,
        kind="conv" if layer.kind == "conv" else "linear",
        macs=layer.macs,
        num_steps=firing.time_steps,
        mean_input=float(seen.mean.mean()),
        density=float(seen.density.mean()),
        ones=float(seen.ones.mean()),
        binary=seen.binary,
        spiking=bool(firing.outputs) and not is_first,
        once=is_first and firing.still,
    )


def _attention(layer: LayerOperations, firing: FiringReport) -> AttentionLayer:
    seen = firing.attentions[layer.name.removesuffix(".mixing")]
    query, key, value = seen.binary
    assert layer.order is not None
    has_spikes = (query or key, value) if layer.order == "query_key_first" else (key or value, query)
    coincidences = getattr(seen, layer.order).sum(0) / firing.num_samples
    first, second = (
        (macs, float(pairs), spikes)
        for macs, pairs, spikes in zip(layer.products[layer.order], coincidences, has_spikes, strict=True)
    )
    return AttentionLayer(
        name=layer.name,
        macs=layer.macs,
        num_steps=firing.time_steps,
        mean_input=float(sum(rate.mean() for rate in seen.rates.values()) / 3),
        density=float(coincidences.sum() / (layer.macs * firing.time_steps)),
        binary=query and key and value,
        published_macs=layer.products["query_key_first"][0],
        products=(first, second),
    )
