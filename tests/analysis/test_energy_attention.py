"""Energy of attention, by hand: both orders, every variant."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from spikformer.analysis.energy import EnergyReport, Operations, audit, measure_energy
from spikformer.analysis.firing import measure_firing
from spikformer.analysis.recorder import record
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.models import Spikformer

TINY = "spikformer_tiny_digits"
CHOICES = list(product(("paper", "strict", "entrywise"), ("every_step", "once")))


def watched(model: Spikformer, x: Tensor) -> tuple[EnergyReport, dict[str, Tensor]]:
    """The report, and what each convolution and linear layer read."""
    read: dict[str, Tensor] = {}
    handles = [
        module.register_forward_pre_hook(lambda _module, given, name=name: read.update({name: given[0]}))
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear)
    ]
    report = measure_energy(model, [x])
    for handle in handles:
        handle.remove()
    return report, read


def energies(report: EnergyReport) -> list[float]:
    return [report.energy_mj(*choice) for choice in CHOICES]


@pytest.mark.parametrize("num_heads", [4, 8])
@pytest.mark.parametrize("attention", ["ssa", "random", "identity", "relu", "softmax", "softmax_float_value"])
def test_every_attention_by_hand(attention: str, num_heads: int) -> None:
    """12 tokens and heads of 16 features, Q Kᵀ first; or of 8, Kᵀ V first."""
    model = specimen(shrunk(TINY, attention=attention, num_heads=num_heads))
    x = frames_for(model.config, 3)
    report = measure_energy(model, [x])
    with torch.no_grad(), record(model) as seen:
        model(x)
    layers = {layer.name: layer for layer in report.layers if layer.kind == "attention"}
    assert list(layers) == ["blocks.0.attention.mixing", "blocks.1.attention.mixing"]
    n, width, steps = 12, 64, 4
    keys_first = "softmax" not in attention and n > width // num_heads
    for name, layer in layers.items():
        met = seen.attention(name.removesuffix(".mixing"))
        q, k, v = ((factor != 0).double() for factor in (met.query, met.key, met.value))
        q_spikes, v_spikes = attention in ("ssa", "random"), attention != "softmax_float_value"
        if keys_first:
            context = ((met.key.transpose(-2, -1) @ met.value) != 0).double()
            pairs = k.transpose(-2, -1) @ v, q @ context
            macs, spiking = n * width * width // num_heads, (True, q_spikes)
        else:
            pairs = q @ k.transpose(-2, -1), (met.maps() != 0).double() @ v
            macs, spiking = n * n * width, (q_spikes, v_spikes)
        counts = [pair.sum().item() / 3 for pair in pairs]
        strict, entrywise = np.zeros(2), np.zeros(2)
        for count, has_spikes in zip(counts, spiking, strict=True):
            strict += (0, count) if has_spikes else (macs * steps, 0)
            entrywise += (0, count) if has_spikes else (count, 0)
        assert layer.operations("strict") == pytest.approx(tuple(strict))
        assert layer.operations("entrywise") == pytest.approx(tuple(entrywise))
        rate = np.mean([factor.mean().item() for factor in (met.query, met.key, met.value)])
        published = steps * n * n * width
        paper = (0, rate * published) if q_spikes and v_spikes else (published, 0)
        assert layer.operations("paper") == pytest.approx(paper)
        assert layer.macs == 2 * macs
        assert layer.binary == (q_spikes and v_spikes)
        assert layer.density == pytest.approx(sum(counts) / (2 * macs * steps))
        assert 0 < layer.density < 1 or attention in ("identity", "softmax", "softmax_float_value")


def test_the_engine_may_take_the_other_order_and_is_counted_by_it() -> None:
    """12 tokens, heads of 16 features: PyTorch takes Q Kᵀ first, the engine Kᵀ V, from d ≤ 2 N on."""
    model = specimen(shrunk(TINY, num_heads=4))
    x = frames_for(model.config, 3)
    firing = measure_firing(model, [x])
    torch_report, engine_report = audit(model, firing), audit(model, firing, runtime="engine")
    assert (torch_report.attention_order, engine_report.attention_order) == ("query_key_first", "key_value_first")
    assert (torch_report.runtime, engine_report.runtime) == ("torch", "engine")
    assert measure_energy(model, [x], runtime="engine") == engine_report
    with torch.no_grad(), record(model) as seen:
        model(x)
    for ours, theirs in zip(torch_report.layers, engine_report.layers, strict=True):
        if ours.kind != "attention":
            assert ours == theirs
            continue
        assert ours.operations("paper") == theirs.operations("paper"), "a formula without an order"
        met = seen.attention(ours.name.removesuffix(".mixing"))
        context = met.key.transpose(-2, -1) @ met.value
        pairs = (context.sum() + (met.query @ (context != 0).double()).sum()).item() / 3
        assert theirs.operations("strict") == pytest.approx((0, pairs))
        assert ours.operations("strict") != pytest.approx((0, pairs), rel=1e-3)
        assert theirs.macs == 2 * 12 * 64 * 16


def test_where_everything_fires_every_pair_coincides() -> None:
    """And the two products cost twice the paper's N² D."""
    model = specimen(shrunk(TINY))
    for block in model.blocks:
        for part in (block.attention.query, block.attention.key, block.attention.value):
            torch.nn.init.constant_(part.norm.weight, 0)
            torch.nn.init.constant_(part.norm.bias, 9.0)
    layers = measure_energy(model, [frames_for(model.config, 1)]).layers
    for layer in layers:
        if layer.kind == "attention":
            assert layer.mean_input == layer.density == 1
            assert layer.operations("paper") == Operations(acs=4 * 12 * 12 * 64)
            assert layer.operations("strict") == Operations(acs=2 * 4 * 12 * 12 * 64)
