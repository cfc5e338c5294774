"""Networks for checks and tests: small ones with life in them, and recordings of the authors' code.

A silent network proves nothing, so a specimen's norms have seen a batch and lean to firing. The golden files hold what
the authors' code computes on small random networks in float64, for each of its three variants: inputs, weights,
logits, spike counts, loss and gradients.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.models import SpikingNetwork, build_model, from_official
from spikformer.models.files import read_safetensors
from spikformer.models.official import translate
from spikformer.presets import get_preset

GOLDEN_FOLDER = Path(__file__).parent / "golden_data"
VARIANTS = ("cifar10", "imagenet", "cifar10dvs")


def shrunk(name: str, **overrides: Any) -> ModelConfig:
    """A preset's config with untouched mathematics and small sizes: an image of 3×4 patches, few features."""
    config = get_preset(name).config
    return config.override(
        image_size=(3 * config.patch_size, 4 * config.patch_size),
        embed_dim=8 * config.num_heads if config.num_heads > 8 else 64,
        depth=min(config.depth, 2),
        time_steps=min(config.time_steps, 4),
    ).override(**overrides)


def specimen(config: ModelConfig, dtype: torch.dtype = torch.float64, seed: int = 0) -> SpikingNetwork:
    """A fresh network in eval mode whose norms have seen one batch and lean to firing, so that every layer does."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model(config).to(dtype)
        norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
        for norm in norms:
            norm.momentum = 1.0
            nn.init.uniform_(norm.bias, 0.5, 1.0)
    with torch.no_grad():
        model.train()(frames_for(config, batch_size=8, dtype=dtype, seed=seed + 1))
    for norm in norms:
        norm.momentum = 0.1
    return model.eval()


def frames_for(
    config: ModelConfig, batch_size: int, dtype: torch.dtype = torch.float64, seed: int = 0, steps: bool = True
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


@dataclass(frozen=True)
class Golden:
    """One variant's recorded run; names of gradients and neurons are translated to ours."""

    variant: str
    state: dict[str, Tensor]
    num_heads: int
    time_steps: int
    input: Tensor
    target: Tensor
    eval_logits: Tensor
    train_logits: Tensor
    train_loss: Tensor
    gradients: dict[str, Tensor]
    spike_counts: dict[str, tuple[int, int]]

    def model(self) -> SpikingNetwork:
        return from_official(self.state, num_heads=self.num_heads, time_steps=self.time_steps)


def load_golden(variant: str, folder: Path = GOLDEN_FOLDER) -> Golden:
    """One recording from a folder of them; raises ValueError for another file of that name."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} of golden files.")
    path = folder / f"{variant}.safetensors"
    try:
        return _parse(variant, *read_safetensors(path))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a golden file: it lacks {error}.") from None


def _parse(variant: str, metadata: dict[str, str], tensors: dict[str, Tensor]) -> Golden:
    sizes = json.loads(metadata["config"])
    counts = json.loads(metadata["spike_counts"])
    x = tensors["input"]
    return Golden(
        variant=variant,
        state=_under("state.", tensors),
        num_heads=sizes["h"],
        time_steps=sizes["T"],
        input=x.transpose(0, 1) if x.ndim == 5 else x,  # Official: event frames are [B, T, C, H, W]
        target=tensors["target"],
        eval_logits=tensors["eval_logits"],
        train_logits=tensors["train_logits"],
        train_loss=tensors["train_loss"],
        gradients={translate(name): x for name, x in _under("grad.", tensors).items()},
        spike_counts={translate(name): (spikes, steps) for name, (spikes, steps) in counts.items()},
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}
