"""Spike-driven Transformer, of the first version."""

from __future__ import annotations

from typing import Any

from spikformer.config import SpikeDrivenConfig
from spikformer.presets.registry import Preset, preset
from spikformer.successors import ROWS

# ImageNet: 224×224, 196 tokens, T = 4.


def _imagenet(depth: int, embed_dim: int) -> SpikeDrivenConfig:
    return SpikeDrivenConfig(
        image_size=(224, 224),
        num_classes=1000,
        depth=depth,
        embed_dim=embed_dim,
        pool_stages=(True, True, True, True),
    )


@preset
def spike_driven_transformer_8_384_imagenet() -> Preset:
    """SpikeDrivenTransformer-8-384: 16.82 M parameters counted, T = 4, 72.28 % top-1, 3.90 mJ."""
    return Preset(_imagenet(8, 384), ROWS["spike_driven_transformer_8_384_imagenet"])


@preset
def spike_driven_transformer_6_512_imagenet() -> Preset:
    """SpikeDrivenTransformer-6-512: 23.37 M parameters counted, T = 4, 74.11 % top-1, 3.56 mJ."""
    return Preset(_imagenet(6, 512), ROWS["spike_driven_transformer_6_512_imagenet"])


@preset
def spike_driven_transformer_8_512_imagenet() -> Preset:
    """SpikeDrivenTransformer-8-512: 29.69 M parameters counted, T = 4, 74.57 % top-1, 4.50 mJ."""
    return Preset(_imagenet(8, 512), ROWS["spike_driven_transformer_8_512_imagenet"])


@preset
def spike_driven_transformer_10_512_imagenet() -> Preset:
    """SpikeDrivenTransformer-10-512: 36.01 M parameters counted, T = 4, 74.66 % top-1, 5.53 mJ."""
    return Preset(_imagenet(10, 512), ROWS["spike_driven_transformer_10_512_imagenet"])


@preset
def spike_driven_transformer_8_768_imagenet() -> Preset:
    """SpikeDrivenTransformer-8-768: 66.34 M parameters counted, T = 4, 77.07 % top-1, 6.09 mJ."""
    return Preset(_imagenet(8, 768), ROWS["spike_driven_transformer_8_768_imagenet"])


# CIFAR-10 and CIFAR-100: 32×32, 64 tokens, T = 4.


@preset
def spike_driven_transformer_2_256_cifar10() -> Preset:
    """SpikeDrivenTransformer-2-256: 2.57 M parameters counted, T = 4; its authors report no accuracy of it."""
    return Preset(SpikeDrivenConfig(embed_dim=256))


@preset
def spike_driven_transformer_2_512_cifar10() -> Preset:
    """SpikeDrivenTransformer-2-512: 10.23 M parameters counted, T = 4, 95.6 % on CIFAR-10."""
    return Preset(SpikeDrivenConfig(), ROWS["spike_driven_transformer_2_512_cifar10"])


@preset
def spike_driven_transformer_2_512_cifar100() -> Preset:
    """SpikeDrivenTransformer-2-512: 10.28 M parameters counted, T = 4, 78.4 % on CIFAR-100."""
    return Preset(SpikeDrivenConfig(num_classes=100), ROWS["spike_driven_transformer_2_512_cifar100"])


# Event cameras: two polarities, T = 16.


def _events(side: int, num_classes: int, **differences: Any) -> SpikeDrivenConfig:
    return SpikeDrivenConfig(
        image_size=(side, side),
        in_channels=2,
        num_classes=num_classes,
        time_steps=16,
        embed_dim=256,
        **differences,
    )


@preset
def spike_driven_transformer_2_256_cifar10dvs() -> Preset:
    """SpikeDrivenTransformer-2-256: 2.57 M parameters counted, T = 16, 80.0 % on CIFAR10-DVS at 64×64, 256 tokens."""
    config = _events(64, 10, attention="spike_driven_dilated")
    return Preset(config, ROWS["spike_driven_transformer_2_256_cifar10dvs"])


@preset
def spike_driven_transformer_2_256_dvs128() -> Preset:
    """SpikeDrivenTransformer-2-256: 2.57 M parameters counted, T = 16, 99.3 % on DVS128 Gesture, 256 tokens."""
    config = _events(128, 11, pool_stages=(False, True, True, True))
    return Preset(config, ROWS["spike_driven_transformer_2_256_dvs128"])
