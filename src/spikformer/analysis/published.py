"""The paper's own energy figures, computed again by the auditor from what the paper prints.

The paper prints no firing rate of a layer, but operations (OPs), from which a mean rate follows: here every layer reads
spikes at the one rate that gives a row's OPs. Where a figure comes out only by a particular way of counting, its row
says which, and where it does not come out, that shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import torch

from spikformer.analysis.conventions import AttentionLayer, Layer, WeightedLayer
from spikformer.analysis.energy import HOROWITZ_45NM, EnergyReport, twin_macs
from spikformer.analysis.operations import LayerOperations, count_operations
from spikformer.config import ModelConfig
from spikformer.models import build_model
from spikformer.presets import Preset, get_preset, list_models

_FLOAT_ATTENTION = ("identity", "relu", "leaky_relu", "softmax", "softmax_float_value")
_VARIANTS = {
    "A_I": "identity",
    "A_LeakyReLU": "leaky_relu",
    "A_ReLU": "relu",
    "A_softmax": "softmax",
    "A_SSA": "ssa",
}
_TABLE_1 = {  # model, then OPs (M) and P (µJ) as printed: floats, softmax, SSA
    "CIFAR10-DVS": ("spikformer_2_256_cifar10dvs", ("16.8", "77"), ("19.1", "88"), ("0.66", "0.594")),
    "CIFAR10": ("spikformer_4_384_cifar10", ("6.3", "29"), ("6.6", "30"), ("1.1", "0.990")),
    "CIFAR100": ("spikformer_4_384_cifar100", ("6.3", "29"), ("6.6", "30"), ("1.3", "1.170")),
}


@dataclass(frozen=True)
class PublishedFigure:
    """One number of the paper beside ours."""

    where: str
    what: str
    unit: str
    printed: str
    computed: float
    counted: str
    """How ours was counted."""

    @property
    def shown(self) -> str:
        """Ours, with the paper's digits."""
        return f"{self.computed:.{len(self.printed.partition('.')[2])}f}"

    @property
    def agrees(self) -> bool:
        return self.shown == self.printed


def energy_at_rate(config: ModelConfig, rate: float) -> EnergyReport:
    """As if every layer but the first read spikes at this rate, and Q, K and V coincided by chance."""
    if not 0 <= rate <= 1:
        raise ValueError(f"A firing rate is a share between 0 and 1, got {rate}.")
    counted = _count(config)
    layers = [_layer_at_rate(config, layer, rate, first=layer is counted[0]) for layer in counted]
    return EnergyReport(
        layers=tuple(layers),
        twin_macs=sum(twin_macs(layer) for layer in counted),
        num_neurons=0,
        time_steps=config.time_steps,
        num_samples=0,
    )


def _layer_at_rate(config: ModelConfig, layer: LayerOperations, rate: float, *, first: bool) -> Layer:
    steps = config.time_steps
    if layer.kind != "attention":
        spikes = rate, rate, rate
        return WeightedLayer(layer.name, layer.kind, layer.macs, steps, *spikes, not first, not first, once=first)
    assert layer.order is not None
    spiking = config.attention not in _FLOAT_ATTENTION
    summed = config.head_dim if layer.order == "query_key_first" else config.num_tokens
    met = 1 - (1 - rate**2) ** (summed or 0)  # the share of sums in which at least one pair coincides
    (first_macs, second_macs), published = layer.products[layer.order], layer.products["query_key_first"][0]
    pairs = rate**2 * first_macs * steps, rate * met * second_macs * steps
    products = (first_macs, pairs[0], spiking), (second_macs, pairs[1], spiking)
    density = sum(pairs) / (layer.macs * steps)
    return AttentionLayer(layer.name, layer.macs, steps, rate, density, spiking, published, products)


def published_figures() -> list[PublishedFigure]:
    """Every figure of operations and energy in the paper, in its order."""
    return [*_first_figure(), *_attention_rows(), *_imagenet_rows(), *_transformer_rows()]


def _first_figure() -> list[PublishedFigure]:
    """Fig. 1: attention of one block of 8-512, vanilla and spiking."""
    name = "spikformer_8_512_imagenet"
    attention = _mixing(name, "softmax", 1.0)
    where, macs = "Fig. 1, VSA", attention.operations().macs
    return [
        PublishedFigure(where, "OPs", "M", "77", macs / 1e6, "T N² D"),
        PublishedFigure(where, "P", "µJ", "354.2", macs * HOROWITZ_45NM.mac_pj / 1e6, "T N² D"),
        PublishedFigure(where, "P", "µJ", "354.2", 77e6 * HOROWITZ_45NM.mac_pj / 1e6, "from the printed OPs"),
        _spiking_figure(name, 5.5e6 / _mixing(name, "ssa", 1.0).operations().acs, ""),
        _spiking_figure(name, _mean_rate(get_preset(name)), ", the mean of all layers by Tab. 2"),
    ]


def _spiking_figure(name: str, rate: float, whence: str) -> PublishedFigure:
    millions = _mixing(name, "ssa", rate).operations().acs / 1e6
    return PublishedFigure("Fig. 1, SSA", "OPs", "M", "5.5", millions, f"fr T N² D at fr = {rate:.1%}{whence}")


def _attention_rows() -> list[PublishedFigure]:
    """Tab. 1: the product of Q, K and V alone, of one block."""
    rows = []
    for data, (name, floats, softmax, spikes) in _TABLE_1.items():
        published = {"A_I": floats, "A_LeakyReLU": floats, "A_ReLU": floats, "A_softmax": softmax, "A_SSA": spikes}
        for variant, (millions, microjoules) in published.items():
            counted = "T N² D" if variant != "A_softmax" else "T N² D; the softmax itself is not counted"
            rate = 1.0
            if variant == "A_SSA":
                dense = _mixing(name, "ssa", 1.0).operations().acs
                rate = float(millions) * 1e6 / dense
                counted = f"fr T N² D at fr = {rate:.1%}"
            attention = _mixing(name, _VARIANTS[variant], rate)
            operations = attention.operations()
            energy = EnergyReport((attention,), 0, 0, attention.num_steps, 0).energy_mj() * 1e3
            where = f"Tab. 1, {data}, {variant}"
            rows.append(PublishedFigure(where, "OPs", "M", millions, sum(operations) / 1e6, counted))
            rows.append(PublishedFigure(where, "P", "µJ", microjoules, energy, counted))
    return rows


def _mixing(name: str, attention: str, rate: float) -> AttentionLayer:
    config = get_preset(name).config.override(attention=attention, depth=1)  # all blocks are alike
    return next(layer for layer in energy_at_rate(config, rate).layers if isinstance(layer, AttentionLayer))


def _imagenet_rows() -> list[PublishedFigure]:
    """Tab. 2: power from operations. Every row has the first convolution of D = 512, rounded to 0.347 G."""
    rows = []
    shared = _count(get_preset("spikformer_8_512_imagenet").config)[0].macs
    rounded = round(shared * 4, -6) // 4
    for name in list_models("spikformer_*_imagenet"):
        preset = get_preset(name)
        paper = preset.paper
        if paper is None:
            continue
        rate = _mean_rate(preset)
        report = energy_at_rate(preset.config, rate)
        own, rest = report.layers[0], report.layers[1:]
        assert isinstance(own, WeightedLayer)
        with_shared = replace(report, layers=(replace(own, macs=rounded), *rest))
        where, printed = f"Tab. 2, {_title(name)}", f"{paper.energy_mj:.3f}"
        giga = report.operations().acs / 1e9
        at_rate = f"fr = {rate:.1%} in every layer"
        rows.append(PublishedFigure(where, "OPs", "G", f"{paper.operations_giga:.2f}", giga, at_rate))
        counted = "first convolution of 64 channels at every step, as 0.347 G"
        rows.append(PublishedFigure(where, "Power", "mJ", printed, with_shared.energy_mj(), counted))
        if own.macs != shared:
            counted = f"its own first convolution, of {preset.config.stage_channels[0]} channels"
            rows.append(PublishedFigure(where, "Power", "mJ", printed, report.energy_mj(), counted))
    return rows


def _mean_rate(preset: Preset) -> float:
    """The one rate in every layer that gives a model's printed operations."""
    assert preset.paper is not None
    assert preset.paper.operations_giga is not None
    return preset.paper.operations_giga * 1e9 / energy_at_rate(preset.config, 1.0).operations().acs


def _transformer_rows() -> list[PublishedFigure]:
    """Tab. 2: the ANN. The paper counts 4 N² D for the attention of all eight blocks, and leaves out the head."""
    preset = get_preset("transformer_8_512_imagenet")
    layers = _count(preset.config)
    attention = [layer for layer in layers if layer.kind == "attention"]
    published = sum(layer.macs for layer in layers if layer.kind != "attention" and layer.name != "head")
    published += 4 * attention[0].products["query_key_first"][0]
    where, rows = "Tab. 2, Transformer-8-512", []
    for macs, counted in (
        (published, "4 N² D for attention, no head"),
        (sum(layer.macs for layer in layers), "every product"),
    ):
        energy = macs * HOROWITZ_45NM.mac_pj / 1e9
        rows.append(PublishedFigure(where, "OPs", "G", "8.33", macs / 1e9, counted))
        rows.append(PublishedFigure(where, "Power", "mJ", "38.340", energy, counted))
    return rows


@cache
def _count(config: ModelConfig) -> list[LayerOperations]:
    with torch.device("meta"):  # counting needs no weights, and no more than one step
        return count_operations(build_model(config.override(time_steps=1)))


def _title(name: str) -> str:
    _, depth, width, _ = name.split("_")
    return f"Spikformer-{depth}-{width}"
