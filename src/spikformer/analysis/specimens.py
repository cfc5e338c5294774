"""Small networks for checks and tests. Their norms have seen a batch and lean to firing: silence proves nothing."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from spikformer.config import NetworkConfig
from spikformer.layers import ConvNorm, LinearNorm, SpikingConv, SpikingLinear, SpikingSelfAttention
from spikformer.models import SpikingNetwork, build_model
from spikformer.presets import get_preset, list_models

_SIZES = ("image_size", "num_classes", "time_steps", "embed_dim", "num_heads")


def shrunk(name: str, **overrides: Any) -> NetworkConfig:
    """A preset's config with untouched mathematics and small sizes: an image of 3×4 patches, few features."""
    return get_preset(name).config.miniature().override(**overrides)


def distinct_models() -> list[str]:
    """One preset for each network that `shrunk` makes, whatever its classes, steps and heads."""
    first = {_without_sizes(shrunk(name)): name for name in reversed(list_models())}
    return [*reversed(first.values())]


def _without_sizes(config: NetworkConfig) -> tuple[Any, ...]:
    values = (getattr(config, field.name) for field in fields(config) if field.name not in _SIZES)
    return type(config), *values


def specimen(config: NetworkConfig, dtype: torch.dtype = torch.float64, seed: int = 0) -> SpikingNetwork:
    """A fresh network in eval mode whose norms have seen one batch and lean to firing, so that every layer does."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model(config).to(dtype)
        norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
        membranes = {unit.norm for unit in model.modules() if _adds_to_a_membrane(unit)}
        operands = _norms_of_operands(model)
        for norm in norms:
            norm.momentum = 1.0
            # Membranes add up from block to block: leaning as far, they would make every neuron fire in every step.
            # Products of Q, K and V of few tokens reach a threshold only if these fire often.
            low, high = (-0.6, 1.0) if norm in membranes else (1.0, 1.5) if norm in operands else (0.5, 1.0)
            nn.init.uniform_(norm.bias, low, high)
    with torch.no_grad():
        model.train()(frames_for(config, batch_size=8, dtype=dtype, seed=seed + 1))
    for norm in norms:
        norm.momentum = 0.1
    return model.eval()


def _adds_to_a_membrane(unit: nn.Module) -> TypeGuard[ConvNorm | LinearNorm]:
    """Whether a unit's norm returns a membrane to add to, instead of the current of a neuron of its own."""
    return isinstance(unit, ConvNorm | LinearNorm) and not isinstance(unit, SpikingConv | SpikingLinear)


def _norms_of_operands(model: nn.Module) -> set[nn.Module]:
    """The norms of Q, K and V."""
    layers = (layer for layer in model.modules() if isinstance(layer, SpikingSelfAttention))
    return {getattr(layer, operand).norm for layer in layers for operand in layer.operands}


def frames_for(
    config: NetworkConfig, batch_size: int, dtype: torch.dtype = torch.float64, seed: int = 0, steps: bool = True
) -> Tensor:
    """Static images [B, C, H, W], or for a two-channel model counts of events [T, B, 2, H, W], one step without T."""
    generator = torch.Generator().manual_seed(seed)
    shape: tuple[int, ...] = (batch_size, config.in_channels, *(config.image_size or (4 * config.patch_size,) * 2))
    if config.in_channels == 2:
        shape = (config.time_steps, *shape) if steps else shape
        return torch.poisson(torch.full(shape, 0.5, dtype=dtype), generator)
    return torch.randn(shape, generator=generator, dtype=dtype)


def random_spikes(shape: tuple[int, ...], density: float, seed: int) -> Tensor:
    """Random spikes in float32."""
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < density).float()
