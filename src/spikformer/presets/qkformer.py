"""QKFormer and MS-QKFormer.

QKFormer's published results are of networks whose samples leak into each other; these presets compute without that leak
(`batch_leak=False`), so published weights reach less with them.
"""

from __future__ import annotations

from typing import Any

from spikformer.config import MSQKFormerConfig, QKFormerConfig, TokenAttentionConfig
from spikformer.presets.registry import Preset, preset
from spikformer.successors import ROWS

# ImageNet: 224×224, 196 tokens in the last stage, T = 4.


def _imagenet(kind: type[TokenAttentionConfig], embed_dim: int, **differences: Any) -> TokenAttentionConfig:
    return kind(
        image_size=(224, 224),
        num_classes=1000,
        depths=(1, 2, 7),
        embed_dim=embed_dim,
        num_heads=embed_dim // 64,
        stem="quarter",
        pooled_conv="first",
        **differences,
    )


@preset
def qkformer_10_384_imagenet() -> Preset:
    """QKFormer-10-384: 16.47 M parameters, T = 4, 78.8 % top-1."""
    return Preset(_imagenet(QKFormerConfig, 384), ROWS["qkformer_10_384_imagenet"])


@preset
def qkformer_10_512_imagenet() -> Preset:
    """QKFormer-10-512: 29.08 M parameters, T = 4, 82.04 % top-1."""
    return Preset(_imagenet(QKFormerConfig, 512), ROWS["qkformer_10_512_imagenet"])


@preset
def qkformer_10_768_imagenet() -> Preset:
    """QKFormer-10-768: 64.96 M parameters, T = 4, 84.22 % top-1, 85.25 % at 288×288, 85.65 % at 384×384."""
    return Preset(_imagenet(QKFormerConfig, 768), ROWS["qkformer_10_768_imagenet"])


# CIFAR-10 and CIFAR-100: 32×32, 64 tokens in the last stage, T = 4.


@preset
def qkformer_4_384_cifar10() -> Preset:
    """QKFormer-4-384: 6.71 M parameters counted, T = 4, 96.18 % on CIFAR-10; 96.21 % in the authors' log."""
    return Preset(QKFormerConfig(), ROWS["qkformer_4_384_cifar10"])


@preset
def qkformer_4_384_cifar100() -> Preset:
    """QKFormer-4-384: 6.74 M parameters counted, T = 4, 81.15 % on CIFAR-100; 81.22 % in the authors' log."""
    return Preset(QKFormerConfig(num_classes=100), ROWS["qkformer_4_384_cifar100"])


# Event cameras: 128×128, 64 tokens in the last stage, two polarities, T = 16.


def _events(num_classes: int, mlp_ratio: float) -> QKFormerConfig:
    return QKFormerConfig(
        image_size=(128, 128),
        in_channels=2,
        num_classes=num_classes,
        time_steps=16,
        depths=(1, 1),
        embed_dim=256,
        num_heads=16,
        mlp_ratio=mlp_ratio,
        stem="eighth",
    )


@preset
def qkformer_2_256_cifar10dvs() -> Preset:
    """QKFormer-2-256: 1.5 M parameters counted, T = 16, 84.0 % on CIFAR10-DVS; 84.1 % in the authors' log."""
    return Preset(_events(10, 1.0), ROWS["qkformer_2_256_cifar10dvs"])


@preset
def qkformer_2_256_dvs128() -> Preset:
    """QKFormer-2-256: 2 M parameters counted, T = 16, 98.6 % on DVS128 Gesture."""
    return Preset(_events(11, 4.0), ROWS["qkformer_2_256_dvs128"])


# MS-QKFormer: its authors publish code and no accuracy.


@preset
def ms_qkformer_10_384_imagenet() -> Preset:
    """MS-QKFormer-10-384: 16.47 M parameters counted, T = 4."""
    return Preset(_imagenet(MSQKFormerConfig, 384, initialisation="convolutions"))


@preset
def ms_qkformer_10_512_imagenet() -> Preset:
    """MS-QKFormer-10-512: 29.08 M parameters counted, T = 4."""
    return Preset(_imagenet(MSQKFormerConfig, 512, initialisation="convolutions"))


@preset
def ms_qkformer_10_768_imagenet() -> Preset:
    """MS-QKFormer-10-768: 64.96 M parameters counted, T = 4."""
    return Preset(_imagenet(MSQKFormerConfig, 768, initialisation="convolutions"))


@preset
def ms_qkformer_4_384_cifar10() -> Preset:
    """MS-QKFormer-4-384 for CIFAR-10: 6.71 M parameters counted, T = 4."""
    return Preset(MSQKFormerConfig())


@preset
def ms_qkformer_4_384_cifar100() -> Preset:
    """MS-QKFormer-4-384 for CIFAR-100: 6.74 M parameters counted, T = 4."""
    return Preset(MSQKFormerConfig(num_classes=100))
