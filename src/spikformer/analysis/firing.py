"""How a model fires and what its layers read, streamed over any number of batches.

    firing = measure_firing(model, batches)
    firing.rates["stem.stages.0.neuron"]                          [T]
    firing.inputs["blocks.0.mlp.hidden.linear"].histogram         [T, 17]
    firing.attentions["blocks.0.attention"].rates["Q"]            [T]

Only sums over steps are kept. They add up over batches, so that a whole data set needs no more memory than one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from spikformer.analysis.recorder import AttentionRecord, attention_record, by_block, has_maps, hooked, spikes_in
from spikformer.errors import FieldError
from spikformer.layers.attention import TokenMixing
from spikformer.models import SpikingNetwork
from spikformer.models.inputs import check_input
from spikformer.models.inspection import eval_mode, unwrap
from spikformer.neurons import SpikingNeuron

_OPERANDS = {"query": "Q", "key": "K", "value": "V"}
NUM_BINS = 17
"""Integers 0 to 15 one by one, then 16 and above together."""


@dataclass
class _Sums:
    """Arrays over time steps, added field by field."""

    def add(self, other: _Sums) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass
class LayerInput(_Sums):
    """What enters a layer at each of T steps: spikes, small integers from residual sums, or real numbers."""

    num_entries: np.ndarray
    total: np.ndarray
    num_nonzero: np.ndarray
    num_fractions: np.ndarray
    """Entries that are negative or not an integer, and so not a count of spikes."""
    histogram: np.ndarray
    """[T, 17]: how often each integer came."""

    @classmethod
    def of(cls, x: Tensor) -> LayerInput:
        """Of [T, …]."""
        x = x.detach().flatten(1)
        whole = (x == x.floor()) & (x >= 0)
        counts = [_histogram(step[kept]) for step, kept in zip(x, whole, strict=True)]
        return cls(
            num_entries=np.full(len(x), x.shape[1]),
            total=x.sum(1, dtype=torch.float64).numpy(force=True),
            num_nonzero=x.count_nonzero(1).numpy(force=True),
            num_fractions=(~whole).sum(1).numpy(force=True),
            histogram=torch.stack(counts).numpy(force=True),
        )

    @property
    def mean(self) -> np.ndarray:
        """The firing rate, where the input is spikes; a 3 counts as three."""
        return self.total / self.num_entries

    @property
    def density(self) -> np.ndarray:
        """The share of entries that are not zero."""
        return self.num_nonzero / self.num_entries

    @property
    def ones(self) -> np.ndarray:
        """The share of entries that are exactly one."""
        return self.histogram[:, 1] / self.num_entries

    @property
    def binary(self) -> bool:
        return bool(self.histogram[:, :2].sum() == self.num_entries.sum())


def _histogram(whole: Tensor) -> Tensor:
    return torch.bincount(whole.clamp(max=NUM_BINS - 1).to(torch.uint8), minlength=NUM_BINS)


@dataclass
class AttentionInput(_Sums):
    """What meets in Q, K and V at each of T steps.

    A coincidence is a pair of entries that are both not zero, the only pairs that a spiking product has to add.
    """

    num_entries: np.ndarray
    """Of each of Q, K and V."""
    query_total: np.ndarray
    key_total: np.ndarray
    value_total: np.ndarray
    query_key_first: np.ndarray
    """[T, 2]: coincidences in Q Kᵀ, then of its result with V."""
    key_value_first: np.ndarray
    """[T, 2]: coincidences in Kᵀ V, then of Q with its result."""
    num_not_spikes: np.ndarray
    """[3]: entries of Q, K and V that are neither 0 nor 1."""

    @classmethod
    def of(cls, seen: AttentionRecord) -> AttentionInput:
        tokens = (seen.query, seen.key, seen.value)  # [T, B, h, N, d]
        query, key, value = (x != 0 for x in tokens)
        scores = (seen.maps() if seen.softmax else seen.query @ seen.key.transpose(-2, -1)) != 0
        context = (seen.key.transpose(-2, -1) @ seen.value) != 0
        return cls(
            num_entries=np.full(len(value), value[0].numel()),
            query_total=_over_steps(seen.query),
            key_total=_over_steps(seen.key),
            value_total=_over_steps(seen.value),
            query_key_first=np.stack(
                [_pairs(query.sum(-2), key.sum(-2)), _pairs(scores.sum(-2), value.sum(-1))], axis=-1
            ),
            key_value_first=np.stack(
                [_pairs(key.sum(-1), value.sum(-1)), _pairs(query.sum(-2), context.sum(-1))], axis=-1
            ),
            num_not_spikes=np.array([((x != 0) & (x != 1)).sum().item() for x in tokens]),
        )

    @property
    def rates(self) -> dict[str, np.ndarray]:
        """Mean of Q, K and V at each step."""
        totals = {"Q": self.query_total, "K": self.key_total, "V": self.value_total}
        return {name: total / self.num_entries for name, total in totals.items()}

    @property
    def binary(self) -> tuple[bool, bool, bool]:
        """Whether Q, K and V are spikes."""
        query, key, value = self.num_not_spikes == 0
        return bool(query), bool(key), bool(value)


def _over_steps(x: Tensor) -> np.ndarray:
    return x.flatten(1).sum(1, dtype=torch.float64).numpy(force=True)


def _pairs(one: Tensor, other: Tensor) -> np.ndarray:
    """Σ over what two tensors [T, …] of counts share, of the product of their counts."""
    return (one * other).flatten(1).sum(1).numpy(force=True)


@dataclass
class FiringReport:
    """Sums over `num_samples` samples, by the names of `model.named_modules()`, in the order layers run."""

    num_samples: int = 0
    time_steps: int = 0
    static: bool = True
    """The input was images, which the first convolution sees once, not T frames."""
    image_size: tuple[int, int] = (0, 0)
    inputs: dict[str, LayerInput] = field(default_factory=dict)
    """What enters each convolution and linear layer."""
    outputs: dict[str, LayerInput] = field(default_factory=dict)
    """What leaves each layer of neurons."""
    attentions: dict[str, AttentionInput] = field(default_factory=dict)
    """What meets in each attention layer."""

    @property
    def rates(self) -> dict[str, np.ndarray]:
        """Spikes per neuron at each step, by layer of neurons."""
        return {name: fired.mean for name, fired in self.outputs.items()}

    @property
    def num_neurons(self) -> dict[str, int]:
        """Neurons in each layer."""
        return {name: int(fired.num_entries[0]) // self.num_samples for name, fired in self.outputs.items()}

    @property
    def operands(self) -> dict[str, dict[str, np.ndarray]]:
        """Rates [T] of those of Q, K and V that are spikes, by attention layer; Q and K after their pool."""
        found: dict[str, dict[str, np.ndarray]] = {}
        for name, rates in self.rates.items():
            layer, _, operand = name.removesuffix(".neuron").rpartition(".")
            if operand in _OPERANDS:
                found.setdefault(layer, {})[_OPERANDS[operand]] = rates
        for layer, rates_of in list(found.items()):
            if layer in self.attentions:
                pooled = self.attentions[layer].rates
                found[layer] = {letter: pooled[letter] for letter in "QKV" if letter in rates_of}
            elif "Q" not in rates_of:  # V alone passes on, without attention
                del found[layer]
        return {layer: {letter: found[layer][letter] for letter in "QKV" if letter in found[layer]} for layer in found}

    @property
    def operands_by_block(self) -> dict[int, dict[str, float]]:
        """The same as means over steps, by the number of the block."""
        found = self.operands
        return {
            block: {letter: float(rates.mean()) for letter, rates in found[layer].items()}
            for block, layer in by_block(found).items()
        }


def measure_firing(
    model: nn.Module, batches: Iterable[Tensor], on_batch: Callable[[int], None] = lambda _: None
) -> FiringReport:
    """Run every batch, images [B, C, H, W] or frames [T, B, C, H, W], in eval mode; its modules' modes stay.

    `on_batch` receives the number of samples of each batch, for a progress bar.
    """
    if isinstance(batches, Tensor):
        raise FieldError("batches", "Expected several batches, got one tensor; put it into a list.")
    model = unwrap(model, "measure_firing")
    report = FiringReport()
    with torch.no_grad(), ExitStack() as stack:
        stack.enter_context(eval_mode(model))
        stack.enter_context(hooked(model, nn.Conv2d, lambda name: _watch_input(name, report)))
        stack.enter_context(hooked(model, nn.Linear, lambda name: _watch_input(name, report)))
        stack.enter_context(hooked(model, SpikingNeuron, lambda name: _watch_output(name, report)))
        stack.enter_context(hooked(model, TokenMixing, lambda name: _watch_attention(name, report)))
        for batch in batches:
            num_samples = _begin(report, model, batch)
            model(batch)
            report.num_samples += num_samples
            on_batch(num_samples)
    if not report.num_samples:
        raise FieldError("batches", "Firing is measured on samples, and there were none; give at least one batch.")
    return report


def firing_rates(model: SpikingNetwork, inputs: Tensor) -> dict[str, float]:
    """Spikes per neuron and step of every layer, at the cost of one forward pass."""
    rates: dict[str, float] = {}

    def watch(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, Tensor]) -> None:
            rates[name] = float(spikes_in(output).mean())

        return hook

    with torch.no_grad(), eval_mode(model), hooked(model, SpikingNeuron, watch):
        model(inputs)
    return rates


def _begin(report: FiringReport, model: SpikingNetwork, batch: Tensor) -> int:
    """The number of samples of a batch, which must be like those before it."""
    check_input(batch, model.config, model.like)
    static, image_size = batch.ndim == 4, (batch.shape[-2], batch.shape[-1])
    time_steps = model.config.time_steps if static else len(batch)
    kind, earlier = (static, time_steps, image_size), (report.static, report.time_steps, report.image_size)
    if report.num_samples and kind != earlier:
        raise FieldError(
            "batches", "Batches must have the same number of time steps and the same size, to be added up."
        )
    report.static, report.time_steps, report.image_size = kind
    return len(batch) if static else batch.shape[1]


def _watch_input(name: str, report: FiringReport) -> Callable[..., None]:
    def hook(_module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        steps = 1 if report.static and name == _first(report, name) else report.time_steps
        _add(report.inputs, name, LayerInput.of(inputs[0].unflatten(0, (steps, -1))))

    return hook


def _first(report: FiringReport, name: str) -> str:
    """The first layer to run; on the first batch, the layer `name` if none ran before it."""
    return next(iter(report.inputs), name)


def _watch_output(name: str, report: FiringReport) -> Callable[..., None]:
    def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, Tensor]) -> None:
        # Of a neuron that treats the samples of a batch as steps, T·B of them: `BatchSequenceLinear`.
        _add(report.outputs, name, LayerInput.of(spikes_in(output).unflatten(0, (report.time_steps, -1))))

    return hook


def _watch_attention(name: str, report: FiringReport) -> Callable[..., None]:
    def hook(mixing: TokenMixing, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        if has_maps(mixing):
            seen = AttentionInput.of(attention_record(mixing, *inputs))
            _add(report.attentions, name.removesuffix(".mixing"), seen)

    return hook


_Kept = TypeVar("_Kept", LayerInput, AttentionInput)


def _add(kept: dict[str, _Kept], name: str, sums: _Kept) -> None:
    if name in kept:
        kept[name].add(sums)
    else:
        kept[name] = sums
