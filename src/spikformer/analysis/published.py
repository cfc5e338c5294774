"""The energy figures of the paper and of Spikingformer, computed again by the auditor from what their authors print.

They print no firing rate of a layer, but operations (OPs), from which a mean rate follows: here every layer reads
spikes at the one rate that gives a row's OPs. Where a figure comes out only by a particular way of counting, its row
says which, and where it does not come out, that shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from spikformer.analysis.energy import HOROWITZ_45NM, EnergyReport, FirstConv, Layer, Product
from spikformer.analysis.operations import LayerOperations, count_operations
from spikformer.config import NetworkConfig
from spikformer.errors import FieldError
from spikformer.models import build_model
from spikformer.paper import ABLATED, ATTENTION_COSTS, BASELINE, FIGURE_1, NETWORKS, AttentionCost
from spikformer.presets import get_preset, list_models
from spikformer.successors import ROWS

_FLOAT_ATTENTION = ("identity", "relu", "leaky_relu", "softmax", "softmax_float_value")
_DATA_SETS = {"cifar10dvs": "CIFAR10-DVS", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}
_VARIANTS = {
    "identity": "A_I",
    "leaky_relu": "A_LeakyReLU",
    "relu": "A_ReLU",
    "softmax": "A_softmax",
    "ssa": "A_SSA",
}
_FIRST_CONV: dict[FirstConv, str] = {"once": "first convolution once", "every_step": "first convolution at every step"}
_FIGURE_1_NETWORK = "spikformer_8_512_imagenet"


@dataclass(frozen=True)
class PublishedFigure:
    """One published number beside ours."""

    where: str
    what: str
    unit: str
    printed: str
    computed: float
    counted: str
    """How ours was counted."""

    @property
    def shown(self) -> str:
        """Ours, with as many digits as theirs."""
        return f"{self.computed:.{len(self.printed.partition('.')[2])}f}"

    @property
    def agrees(self) -> bool:
        return self.shown == self.printed


def energy_at_rate(config: NetworkConfig, rate: float) -> EnergyReport:
    """As if every layer but the first read spikes at this rate, and Q, K and V coincided by chance."""
    if not 0 <= rate <= 1:
        raise FieldError("rate", f"A firing rate is a share between 0 and 1, got {rate}.")
    counted = _count(config)
    layers = [_layer_at_rate(config, layer, rate, first=layer is counted[0]) for layer in counted]
    return EnergyReport(
        layers=tuple(layers),
        twin_macs=sum(layer.twin_macs for layer in counted),
        num_neurons=0,
        time_steps=config.time_steps,
        num_samples=0,
    )


def _layer_at_rate(config: Any, layer: LayerOperations, rate: float, *, first: bool) -> Layer:
    if layer.kind != "attention":
        return Layer(
            name=layer.name,
            kind=layer.kind,
            num_steps=config.time_steps,
            products=(Product(layer.macs, density=rate, ones=rate, binary=not first),),
            mean_input=rate,
            binary=not first,
            spiking=not first,
            paper_macs=layer.macs,
            once=first,
        )
    order = layer.orders["torch"]
    spikes = config.attention not in _FLOAT_ATTENTION
    summed = config.head_dim if order == "query_key_first" else config.num_tokens
    met = 1 - (1 - rate**2) ** (summed or 0)  # the share of sums in which at least one pair coincides
    densities = (rate**2, rate * met)
    return Layer(
        name=layer.name,
        kind="attention",
        num_steps=config.time_steps,
        products=tuple(
            Product(macs, density, density if spikes else 0.0, spikes)
            for macs, density in zip(layer.products[order], densities, strict=True)
        ),
        mean_input=rate,
        binary=spikes,
        spiking=spikes,
        paper_macs=layer.products["query_key_first"][0],
        order=order,
    )


def published_figures() -> list[PublishedFigure]:
    """Every figure of operations and energy in the paper, in its order, then those of its successors."""
    paper = (*_first_figure(), *_attention_rows(), *_baseline_rows(), *_imagenet_rows(), *_transformer_rows())
    return [*paper, *_successor_rows()]


def _first_figure() -> list[PublishedFigure]:
    """Fig. 1: attention of one block of 8-512, vanilla and spiking."""
    vanilla, where = FIGURE_1["softmax"], "Fig. 1, VSA"
    assert vanilla.energy_uj is not None
    macs, printed_macs = _mixing(_FIGURE_1_NETWORK, "softmax", 1.0).operations().macs, _number(vanilla) * 1e6
    dense = _mixing(_FIGURE_1_NETWORK, "ssa", 1.0).operations().acs
    return [
        PublishedFigure(where, "OPs", "M", vanilla.operations_millions, macs / 1e6, "T N² D"),
        PublishedFigure(where, "P", "µJ", vanilla.energy_uj, _mac_energy_uj(macs), "T N² D"),
        PublishedFigure(where, "P", "µJ", vanilla.energy_uj, _mac_energy_uj(printed_macs), "from the printed OPs"),
        _spiking_figure(_number(FIGURE_1["ssa"]) * 1e6 / dense, ""),
        _spiking_figure(_mean_rate(_FIGURE_1_NETWORK), ", the mean of all layers by Tab. 2"),
    ]


def _number(cost: AttentionCost) -> float:
    return float(cost.operations_millions)


def _mac_energy_uj(macs: float) -> float:
    return macs * HOROWITZ_45NM.mac_pj / 1e6


def _spiking_figure(rate: float, whence: str) -> PublishedFigure:
    millions = _mixing(_FIGURE_1_NETWORK, "ssa", rate).operations().acs / 1e6
    printed, counted = FIGURE_1["ssa"].operations_millions, f"fr T N² D at fr = {rate:.1%}{whence}"
    return PublishedFigure("Fig. 1, SSA", "OPs", "M", printed, millions, counted)


def _attention_rows() -> list[PublishedFigure]:
    """Tab. 1: the product of Q, K and V alone, of one block."""
    rows = []
    for data_set, costs in ATTENTION_COSTS.items():
        for variant, printed in costs.items():
            assert printed.energy_uj is not None
            rate, counted = 1.0, "T N² D"
            if variant == "softmax":
                counted = "T N² D; the softmax itself is not counted"
            if variant == "ssa":
                rate = _number(printed) * 1e6 / _mixing(ABLATED[data_set], "ssa", 1.0).operations().acs
                counted = f"fr T N² D at fr = {rate:.1%}"
            attention = _mixing(ABLATED[data_set], variant, rate)
            energy = EnergyReport((attention,), 0, 0, attention.num_steps, 0).energy_mj() * 1e3
            where = f"Tab. 1, {_DATA_SETS[data_set]}, {_VARIANTS[variant]}"
            millions = sum(attention.operations()) / 1e6
            rows.append(PublishedFigure(where, "OPs", "M", printed.operations_millions, millions, counted))
            rows.append(PublishedFigure(where, "P", "µJ", printed.energy_uj, energy, counted))
    return rows


def _mixing(name: str, attention: str, rate: float) -> Layer:
    config = get_preset(name).config.override(attention=attention, depth=1)  # all blocks are alike
    return next(layer for layer in energy_at_rate(config, rate).layers if layer.kind == "attention")


def _imagenet_rows() -> list[PublishedFigure]:
    """Tab. 2: power from operations. Every row has the first convolution of D = 512, rounded to 0.347 G."""
    rows = []
    shared = _count(get_preset("spikformer_8_512_imagenet").config)[0].macs
    rounded = round(shared * 4, -6) // 4
    for name in list_models("spikformer_*_imagenet"):
        if name not in NETWORKS:
            continue
        paper, config, rate = NETWORKS[name], get_preset(name).config, _mean_rate(name)
        report = energy_at_rate(config, rate)
        own, rest = report.layers[0], report.layers[1:]
        with_shared = replace(report, layers=(replace(own, paper_macs=rounded), *rest))
        where, printed = f"Tab. 2, Spikformer-{config.depth}-{config.embed_dim}", f"{paper.energy_mj:.3f}"
        giga = report.operations().acs / 1e9
        at_rate = f"fr = {rate:.1%} in every layer"
        rows.append(PublishedFigure(where, "OPs", "G", f"{paper.operations_giga:.2f}", giga, at_rate))
        counted = "first convolution of 64 channels at every step, as 0.347 G"
        rows.append(PublishedFigure(where, "Power", "mJ", printed, with_shared.energy_mj(), counted))
        if own.macs != shared:
            counted = f"its own first convolution, of {config.stage_channels[0]} channels"
            rows.append(PublishedFigure(where, "Power", "mJ", printed, report.energy_mj(), counted))
    return rows


def _baseline_rows() -> list[PublishedFigure]:
    """Tab. 2: SEW-ResNet. Its first convolution is in the power once, where that of Spikformer is in it T times.

    A rate above the mean of a layer's spikes is not a contradiction: where spikes are summed, the inputs are integers.
    """
    rows = []
    for name, paper in BASELINE.items():
        rate = _mean_rate(name)
        report = energy_at_rate(get_preset(name).config, rate)
        where, printed = f"Tab. 2, {get_preset(name).config.title}", f"{paper.energy_mj:.3f}"
        giga, at_rate = report.operations().acs / 1e9, f"mean input of {rate:.1%} in every layer, implied by the OPs"
        rows.append(PublishedFigure(where, "OPs", "G", f"{paper.operations_giga:.2f}", giga, at_rate))
        for first_conv, counted in _FIRST_CONV.items():
            energy = report.energy_mj("paper", first_conv)
            rows.append(PublishedFigure(where, "Power", "mJ", printed, energy, counted))
    return rows


def _successor_rows() -> list[PublishedFigure]:
    """Spikingformer's README: every network with its own first convolution, at every step."""
    rows = []
    for name in list_models("spikingformer_*_imagenet"):
        published, config, rate = ROWS[name], get_preset(name).config, _mean_rate(name)
        report, where = energy_at_rate(config, rate), f"README, {config.title}"
        giga, at_rate = report.operations().acs / 1e9, f"fr = {rate:.1%} in every layer"
        rows.append(PublishedFigure(where, "OPs", "G", f"{published.operations_giga:.2f}", giga, at_rate))
        counted = f"its own first convolution, of {config.stage_channels[0]} channels, at every step"
        energy = report.energy_mj("paper", "every_step")
        rows.append(PublishedFigure(where, "Power", "mJ", f"{published.energy_mj:.2f}", energy, counted))
    return rows


def implied_mean_rates() -> dict[str, tuple[float, float]]:
    """The mean firing rates that energies printed without operations imply, by network.

    With the first convolution counted at every step, and once. Some rate gives any energy, so that these check nothing.
    """
    rates = {}
    for name, row in ROWS.items():
        if row.energy_mj is not None and row.operations_giga is None:
            config = get_preset(name).config
            silent, dense = energy_at_rate(config, 0.0), energy_at_rate(config, 1.0)
            every_step, once = (
                (row.energy_mj - silent.energy_mj("paper", when))
                / (dense.energy_mj("paper", when) - silent.energy_mj("paper", when))
                for when in ("every_step", "once")
            )
            rates[name] = every_step, once
    return rates


def _mean_rate(name: str) -> float:
    """The one rate in every layer that gives a network's printed operations."""
    printed = (NETWORKS | ROWS)[name].operations_giga
    assert printed is not None
    return printed * 1e9 / energy_at_rate(get_preset(name).config, 1.0).operations().acs


def _transformer_rows() -> list[PublishedFigure]:
    """Tab. 2: the ANN. The paper counts 4 N² D for the attention of all eight blocks, and leaves out the head."""
    name = "transformer_8_512_imagenet"
    paper, layers = NETWORKS[name], _count(get_preset(name).config)
    attention = [layer for layer in layers if layer.kind == "attention"]
    published = sum(layer.macs for layer in layers if layer.kind != "attention" and layer.name != "head")
    published += 4 * attention[0].products["query_key_first"][0]
    where, rows = "Tab. 2, Transformer-8-512", []
    for macs, counted in (
        (published, "4 N² D for attention, no head"),
        (sum(layer.macs for layer in layers), "every product"),
    ):
        energy = _mac_energy_uj(macs) / 1e3
        rows.append(PublishedFigure(where, "OPs", "G", f"{paper.operations_giga:.2f}", macs / 1e9, counted))
        rows.append(PublishedFigure(where, "Power", "mJ", f"{paper.energy_mj:.3f}", energy, counted))
    return rows


@cache
def _count(config: NetworkConfig) -> list[LayerOperations]:
    with torch.device("meta"):  # counting needs no weights, and no more than one step
        return count_operations(build_model(config.override(time_steps=1)))
