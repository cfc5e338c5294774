"""Max-Former, small ones of ours, and Max-ResNet."""

from __future__ import annotations

from spikformer.config import MaxFormerConfig, MaxResNetConfig
from spikformer.presets.registry import Preset, preset
from spikformer.successors import ROWS

# ImageNet: 224×224, 196 tokens in the last stage.


def _imagenet(embed_dim: int, time_steps: int) -> MaxFormerConfig:
    return MaxFormerConfig(
        image_size=(224, 224),
        num_classes=1000,
        time_steps=time_steps,
        depths=(1, 2, 7),
        embed_dim=embed_dim,
        num_heads=embed_dim // 64,
        stem="quarter",
        mixer_kernels=(7, 5),
        initialisation="convolutions",
    )


@preset
def maxformer_10_384_imagenet() -> Preset:
    """Max-Former-10-384: 16.24 M parameters counted, T = 4, 77.78 % top-1."""
    return Preset(_imagenet(384, 4), ROWS["maxformer_10_384_imagenet"])


@preset
def maxformer_10_512_imagenet() -> Preset:
    """Max-Former-10-512: 28.65 M parameters counted, T = 1, 75.43 % top-1."""
    return Preset(_imagenet(512, 1), ROWS["maxformer_10_512_imagenet"])


@preset
def maxformer_10_768_imagenet() -> Preset:
    """Max-Former-10-768: 63.99 M parameters, T = 4, 82.39 % top-1, 78.6 % at T = 1."""
    return Preset(_imagenet(768, 4), ROWS["maxformer_10_768_imagenet"])


# CIFAR-10 and CIFAR-100: 32×32, 64 tokens in the last stage, T = 4.


@preset
def maxformer_4_384_cifar10() -> Preset:
    """Max-Former-4-384: 6.57 M parameters counted, T = 4, 97.04 % on CIFAR-10, at its best epoch."""
    return Preset(MaxFormerConfig(), ROWS["maxformer_4_384_cifar10"])


@preset
def maxformer_4_384_cifar100() -> Preset:
    """Max-Former-4-384: 6.60 M parameters counted, T = 4, 82.65 % on CIFAR-100, at its best epoch."""
    return Preset(MaxFormerConfig(num_classes=100), ROWS["maxformer_4_384_cifar100"])


# Event cameras: 128×128, 64 tokens in the last stage, two polarities, T = 16.


def _events(num_classes: int) -> MaxFormerConfig:
    return MaxFormerConfig(
        image_size=(128, 128),
        in_channels=2,
        num_classes=num_classes,
        time_steps=16,
        depths=(1, 1),
        embed_dim=256,
        num_heads=16,
        mlp_ratio=1.0,
        stem="eighth",
        mixer_kernels=(3,),
    )


@preset
def maxformer_2_256_cifar10dvs() -> Preset:
    """Max-Former-2-256: 1.46 M parameters counted, T = 16, 84.2 % on CIFAR10-DVS, at its best epoch."""
    return Preset(_events(10), ROWS["maxformer_2_256_cifar10dvs"])


@preset
def maxformer_2_256_dvs128() -> Preset:
    """Max-Former-2-256: 1.46 M parameters counted, T = 16, 98.61 % on DVS128 Gesture, at its best epoch."""
    return Preset(_events(11), ROWS["maxformer_2_256_dvs128"])


# Our own, for embedded data and for a laptop: every weight but the first convolution's sees spikes.


@preset
def maxformer_tiny_digits() -> Preset:
    """Stages of width 32 and 64 for scikit-learn's 8×8 digits: 16 tokens in the last, T = 4."""
    return Preset(
        MaxFormerConfig(image_size=(8, 8), in_channels=1, depths=(1, 2), embed_dim=64, num_heads=4, mixer_kernels=(3,))
    )


@preset
def maxformer_tiny_digits_dvs() -> Preset:
    """Stages of width 16, 32 and 64 for synthetic 16×16 recordings of digits: 16 tokens in the last, T = 8."""
    return Preset(MaxFormerConfig(image_size=(16, 16), in_channels=2, time_steps=8, embed_dim=64, num_heads=4))


@preset
def maxformer_small_cifar10() -> Preset:
    """Max-Former-4-192 for CIFAR-10, 1.65 M parameters: 64 tokens in the last stage, T = 4."""
    return Preset(MaxFormerConfig(embed_dim=192, num_heads=6))


# Max-ResNet on CIFAR-10 and CIFAR-100: 32×32, 8×8 positions in the last map, T = 4.


@preset
def max_resnet_18_cifar10() -> Preset:
    """Max-ResNet-18: 12.50 M parameters counted, T = 4, 97.17 % on CIFAR-10."""
    return Preset(MaxResNetConfig(), ROWS["max_resnet_18_cifar10"])


@preset
def max_resnet_18_cifar100() -> Preset:
    """Max-ResNet-18: 12.55 M parameters counted, T = 4, 83.06 % on CIFAR-100."""
    return Preset(MaxResNetConfig(num_classes=100), ROWS["max_resnet_18_cifar100"])
