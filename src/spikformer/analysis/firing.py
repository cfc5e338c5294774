"""How a model fires and what its layers read, streamed over any number of batches.

firing = measure_firing(model, batches)
firing.rates["stem.stages.0.neuron"]                          # [T]
firing.inputs["blocks.0.mlp.hidden.linear"].histogram         # [T, 17]
firing.attentions["blocks.0.attention"].rates["Q"]            # [T]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from spikformer.analysis.recorder import attention_record, has_maps, hooked, spikes_in
from spikformer.analysis.statistics import AttentionInput, LayerInput
from spikformer.layers.attention import TokenMixing
from spikformer.models import SpikingNetwork
from spikformer.models.inputs import check_input
from spikformer.models.inspection import eval_mode, unwrap
from spikformer.neurons import SpikingNeuron

_Sums = TypeVar("_Sums", LayerInput, AttentionInput)


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


def measure_firing(
    model: nn.Module, batches: Iterable[Tensor], on_batch: Callable[[int], None] = lambda _: None
) -> FiringReport:
    """Run every batch, images [B, C, H, W] or frames [T, B, C, H, W], in eval mode; its modules' modes stay.

    `on_batch` is told how many samples each batch had, for a bar.
    """
    if isinstance(batches, Tensor):
        raise ValueError("Expected several batches, got one tensor; put it into a list.")
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
        raise ValueError("Firing is measured on samples, and there were none; give at least one batch.")
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
        raise ValueError("Batches must have the same number of time steps and the same size, to be added up.")
    report.static, report.time_steps, report.image_size = kind
    return len(batch) if static else batch.shape[1]


def _watch_input(name: str, report: FiringReport) -> Callable[..., None]:
    def hook(_module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        steps = 1 if report.static and name == _first(report, name) else report.time_steps
        _add(report.inputs, name, LayerInput.of(inputs[0].unflatten(0, (steps, -1))))

    return hook


def _first(report: FiringReport, name: str) -> str:
    """The first layer to run; on the first batch it is the one that asks."""
    return next(iter(report.inputs), name)


def _watch_output(name: str, report: FiringReport) -> Callable[..., None]:
    def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, Tensor]) -> None:
        _add(report.outputs, name, LayerInput.of(spikes_in(output)))

    return hook


def _watch_attention(name: str, report: FiringReport) -> Callable[..., None]:
    def hook(mixing: TokenMixing, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        if has_maps(mixing):
            seen = AttentionInput.of(attention_record(mixing, *inputs))
            _add(report.attentions, name.removesuffix(".mixing"), seen)

    return hook


def _add(kept: dict[str, _Sums], name: str, sums: _Sums) -> None:
    if name in kept:
        kept[name].add(sums)
    else:
        kept[name] = sums
