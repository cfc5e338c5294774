"""Watching a model from outside, by forward hooks. No layer knows that it is watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from spikformer.neurons import SpikingNeuron


def spike_counts(model: nn.Module, x: Tensor) -> dict[str, tuple[int, int]]:
    """Spikes and neuron-steps of one forward pass, by the name of each neuron layer."""
    counts: dict[str, tuple[int, int]] = {}

    def watch(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, outputs: tuple[Tensor, Tensor]) -> None:
            spikes = outputs[0]
            counts[name] = (int(spikes.count_nonzero()), spikes.numel())

        return hook

    neurons = [(name, module) for name, module in model.named_modules() if isinstance(module, SpikingNeuron)]
    handles = [module.register_forward_hook(watch(name)) for name, module in neurons]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return counts
