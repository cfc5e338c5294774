"""Spikingformer, and Spikingformer with the pool before the neuron (CML)."""

from __future__ import annotations

from collections.abc import Callable

from spikformer.config import SpikingformerConfig
from spikformer.presets.registry import Preset, preset
from spikformer.successors import ROWS

# ImageNet: 224×224, 196 tokens, T = 4.


def _imagenet(depth: int, embed_dim: int) -> SpikingformerConfig:
    return SpikingformerConfig(
        image_size=(224, 224),
        num_classes=1000,
        depth=depth,
        embed_dim=embed_dim,
        num_heads=8,
        pool_stages=(True, True, True, True),
    )


@preset
def spikingformer_8_384_imagenet() -> Preset:
    """Spikingformer-8-384: 16.81 M parameters, T = 4, 72.45 % top-1, 3.88 G OPs, 4.69 mJ."""
    return Preset(_imagenet(8, 384), ROWS["spikingformer_8_384_imagenet"])


@preset
def spikingformer_8_512_imagenet() -> Preset:
    """Spikingformer-8-512: 29.68 M parameters, T = 4, 74.79 % top-1, 6.52 G OPs, 7.46 mJ."""
    return Preset(_imagenet(8, 512), ROWS["spikingformer_8_512_imagenet"])


@preset
def spikingformer_8_768_imagenet() -> Preset:
    """Spikingformer-8-768: 66.34 M parameters, T = 4, 75.85 % top-1, 12.54 G OPs, 13.68 mJ."""
    return Preset(_imagenet(8, 768), ROWS["spikingformer_8_768_imagenet"])


# CIFAR-10 and CIFAR-100: 32×32, 64 tokens, T = 4.


def _cifar(depth: int, embed_dim: int, num_classes: int) -> SpikingformerConfig:
    # Official: 12 heads on CIFAR-10 and 8 on CIFAR-100; width 256 cannot be divided by 12.
    num_heads = 12 if num_classes == 10 and embed_dim == 384 else 8
    return SpikingformerConfig(depth=depth, embed_dim=embed_dim, num_heads=num_heads, num_classes=num_classes)


@preset
def spikingformer_4_256_cifar10() -> Preset:
    """Spikingformer-4-256: 4.15 M parameters, T = 4, 94.77 % on CIFAR-10."""
    return Preset(_cifar(4, 256, 10), ROWS["spikingformer_4_256_cifar10"])


@preset
def spikingformer_2_384_cifar10() -> Preset:
    """Spikingformer-2-384: 5.76 M parameters, T = 4, 95.22 % on CIFAR-10."""
    return Preset(_cifar(2, 384, 10), ROWS["spikingformer_2_384_cifar10"])


@preset
def spikingformer_4_384_cifar10() -> Preset:
    """Spikingformer-4-384: 9.32 M parameters, T = 4, 95.61 % on CIFAR-10, 95.81 % after 400 epochs."""
    return Preset(_cifar(4, 384, 10), ROWS["spikingformer_4_384_cifar10"])


@preset
def spikingformer_4_256_cifar100() -> Preset:
    """Spikingformer-4-256: 4.18 M parameters counted, T = 4, 77.43 % on CIFAR-100."""
    return Preset(_cifar(4, 256, 100), ROWS["spikingformer_4_256_cifar100"])


@preset
def spikingformer_2_384_cifar100() -> Preset:
    """Spikingformer-2-384: 5.80 M parameters counted, T = 4, 78.34 % on CIFAR-100."""
    return Preset(_cifar(2, 384, 100), ROWS["spikingformer_2_384_cifar100"])


@preset
def spikingformer_4_384_cifar100() -> Preset:
    """Spikingformer-4-384: 9.35 M parameters counted, T = 4, 79.09 % on CIFAR-100, 79.21 % after 400 epochs."""
    return Preset(_cifar(4, 384, 100), ROWS["spikingformer_4_384_cifar100"])


# Event cameras: 128×128, 64 tokens, two polarities, T = 16.


def _events(num_classes: int) -> SpikingformerConfig:
    return SpikingformerConfig(
        image_size=(128, 128),
        in_channels=2,
        num_classes=num_classes,
        time_steps=16,
        tau=1.5,
        depth=2,
        embed_dim=256,
        num_heads=16,
        pool_stages=(True, True, True, True),
    )


@preset
def spikingformer_2_256_cifar10dvs() -> Preset:
    """Spikingformer-2-256: 2.57 M parameters, 81.3 % on CIFAR10-DVS at T = 16, 79.9 % at T = 10."""
    return Preset(_events(10), ROWS["spikingformer_2_256_cifar10dvs"])


@preset
def spikingformer_2_256_dvs128() -> Preset:
    """Spikingformer-2-256: 2.57 M parameters, 98.3 % on DVS128 Gesture at T = 16, 96.2 % at T = 10."""
    return Preset(_events(11), ROWS["spikingformer_2_256_dvs128"])


# CML: the same networks with one change; on events with another τ, too.


def _cml(plain: Callable[[], Preset], tau: float = 2.0) -> SpikingformerConfig:
    return plain().config.override(pool_after="norm", tau=tau)


@preset
def cml_spikingformer_8_384_imagenet() -> Preset:
    """CML-Spikingformer-8-384: 16.81 M parameters, T = 4, 74.35 % top-1."""
    return Preset(_cml(spikingformer_8_384_imagenet), ROWS["cml_spikingformer_8_384_imagenet"])


@preset
def cml_spikingformer_8_512_imagenet() -> Preset:
    """CML-Spikingformer-8-512: 29.68 M parameters, T = 4, 76.54 % top-1."""
    return Preset(_cml(spikingformer_8_512_imagenet), ROWS["cml_spikingformer_8_512_imagenet"])


@preset
def cml_spikingformer_8_768_imagenet() -> Preset:
    """CML-Spikingformer-8-768: 66.34 M parameters, T = 4, 77.64 % top-1, 78.46 % at 288×288."""
    return Preset(_cml(spikingformer_8_768_imagenet), ROWS["cml_spikingformer_8_768_imagenet"])


@preset
def cml_spikingformer_4_256_cifar10() -> Preset:
    """CML-Spikingformer-4-256: 4.15 M parameters, T = 4, 94.94 % on CIFAR-10."""
    return Preset(_cml(spikingformer_4_256_cifar10), ROWS["cml_spikingformer_4_256_cifar10"])


@preset
def cml_spikingformer_2_384_cifar10() -> Preset:
    """CML-Spikingformer-2-384: 5.76 M parameters, T = 4, 95.54 % on CIFAR-10."""
    return Preset(_cml(spikingformer_2_384_cifar10), ROWS["cml_spikingformer_2_384_cifar10"])


@preset
def cml_spikingformer_4_384_cifar10() -> Preset:
    """CML-Spikingformer-4-384: 9.32 M parameters, T = 4, 95.81 % on CIFAR-10, 95.95 % after 400 epochs."""
    return Preset(_cml(spikingformer_4_384_cifar10), ROWS["cml_spikingformer_4_384_cifar10"])


@preset
def cml_spikingformer_4_256_cifar100() -> Preset:
    """CML-Spikingformer-4-256: 4.18 M parameters counted, T = 4, 78.19 % on CIFAR-100."""
    return Preset(_cml(spikingformer_4_256_cifar100), ROWS["cml_spikingformer_4_256_cifar100"])


@preset
def cml_spikingformer_2_384_cifar100() -> Preset:
    """CML-Spikingformer-2-384: 5.80 M parameters counted, T = 4, 78.87 % on CIFAR-100."""
    return Preset(_cml(spikingformer_2_384_cifar100), ROWS["cml_spikingformer_2_384_cifar100"])


@preset
def cml_spikingformer_4_384_cifar100() -> Preset:
    """CML-Spikingformer-4-384: 9.35 M parameters counted, T = 4, 79.98 % on CIFAR-100, 80.37 % after 400 epochs."""
    return Preset(_cml(spikingformer_4_384_cifar100), ROWS["cml_spikingformer_4_384_cifar100"])


@preset
def cml_spikingformer_2_256_cifar10dvs() -> Preset:
    """CML-Spikingformer-2-256: 2.57 M parameters, 81.4 % on CIFAR10-DVS at T = 16, 80.5 % at T = 10."""
    return Preset(_cml(spikingformer_2_256_cifar10dvs, tau=1.75), ROWS["cml_spikingformer_2_256_cifar10dvs"])


@preset
def cml_spikingformer_2_256_dvs128() -> Preset:
    """CML-Spikingformer-2-256: 2.57 M parameters, 98.6 % on DVS128 Gesture at T = 16, 97.2 % at T = 10."""
    return Preset(_cml(spikingformer_2_256_dvs128, tau=1.75), ROWS["cml_spikingformer_2_256_dvs128"])


# Our own, with the pool before the neuron: for embedded data, and for a laptop.


@preset
def cml_spikingformer_tiny_digits() -> Preset:
    """Two blocks of width 64 for scikit-learn's 8×8 digits: 16 tokens, T = 4."""
    return Preset(
        SpikingformerConfig(
            image_size=(8, 8),
            in_channels=1,
            embed_dim=64,
            depth=2,
            num_heads=4,
            pool_stages=(False, True),
            pool_after="norm",
        )
    )


@preset
def cml_spikingformer_tiny_digits_dvs() -> Preset:
    """Two blocks of width 64 for synthetic 16×16 recordings of digits: 16 tokens, T = 8."""
    config = cml_spikingformer_tiny_digits().config
    return Preset(config.override(image_size=(16, 16), in_channels=2, time_steps=8, pool_stages=(True, True)))


@preset
def cml_spikingformer_small_cifar10() -> Preset:
    """CML-Spikingformer-1-256 with PLIF for CIFAR-10, 1.77 M parameters: 64 tokens, T = 4.

    It pools after the second and the fourth convolution, not after the third, so that width 256 costs what 192 did.
    """
    return Preset(
        SpikingformerConfig(
            embed_dim=256,
            depth=1,
            num_heads=8,
            neuron="plif",
            pool_stages=(False, True, False, True),
            pool_after="norm",
        )
    )


@preset
def cml_spikingformer_small_fashion_mnist() -> Preset:
    """The same at width 128 for Fashion-MNIST, 0.45 M parameters: 49 tokens, T = 4."""
    config = cml_spikingformer_small_cifar10().config
    return Preset(config.override(image_size=(28, 28), in_channels=1, embed_dim=128, num_heads=4))
