"""Spikformer with the pool before the neuron (CML): each is the paper's network with that one change.

There is public code for CIFAR alone; the others follow our presets of Spikformer.
"""

from __future__ import annotations

from collections.abc import Callable

from spikformer.config import ModelConfig
from spikformer.presets import spikformer
from spikformer.presets.registry import Preset, preset
from spikformer.successors import ROWS


def _cml(plain: Callable[[], Preset]) -> ModelConfig:
    return plain().config.override(pool_after="norm")


@preset
def cml_spikformer_8_384_imagenet() -> Preset:
    """CML-Spikformer-8-384: 16.81 M parameters, T = 4, 72.73 % top-1."""
    return Preset(_cml(spikformer.spikformer_8_384_imagenet), ROWS["cml_spikformer_8_384_imagenet"])


@preset
def cml_spikformer_8_512_imagenet() -> Preset:
    """CML-Spikformer-8-512: 29.68 M parameters, T = 4, 75.61 % top-1."""
    return Preset(_cml(spikformer.spikformer_8_512_imagenet), ROWS["cml_spikformer_8_512_imagenet"])


@preset
def cml_spikformer_8_768_imagenet() -> Preset:
    """CML-Spikformer-8-768: 66.34 M parameters, T = 4, 77.34 % top-1."""
    return Preset(_cml(spikformer.spikformer_8_768_imagenet), ROWS["cml_spikformer_8_768_imagenet"])


@preset
def cml_spikformer_4_256_cifar10() -> Preset:
    """CML-Spikformer-4-256: 4.15 M parameters, T = 4, 94.82 % on CIFAR-10."""
    return Preset(_cml(spikformer.spikformer_4_256_cifar10), ROWS["cml_spikformer_4_256_cifar10"])


@preset
def cml_spikformer_2_384_cifar10() -> Preset:
    """CML-Spikformer-2-384: 5.76 M parameters, T = 4, 95.63 % on CIFAR-10."""
    return Preset(_cml(spikformer.spikformer_2_384_cifar10), ROWS["cml_spikformer_2_384_cifar10"])


@preset
def cml_spikformer_4_384_cifar10() -> Preset:
    """CML-Spikformer-4-384: 9.32 M parameters, T = 4, 95.93 % on CIFAR-10, 96.04 % after 400 epochs."""
    return Preset(_cml(spikformer.spikformer_4_384_cifar10), ROWS["cml_spikformer_4_384_cifar10"])


@preset
def cml_spikformer_4_256_cifar100() -> Preset:
    """CML-Spikformer-4-256: 4.18 M parameters counted, T = 4, 77.64 % on CIFAR-100."""
    return Preset(_cml(spikformer.spikformer_4_256_cifar100), ROWS["cml_spikformer_4_256_cifar100"])


@preset
def cml_spikformer_2_384_cifar100() -> Preset:
    """CML-Spikformer-2-384: 5.80 M parameters counted, T = 4, 78.75 % on CIFAR-100."""
    return Preset(_cml(spikformer.spikformer_2_384_cifar100), ROWS["cml_spikformer_2_384_cifar100"])


@preset
def cml_spikformer_4_384_cifar100() -> Preset:
    """CML-Spikformer-4-384: 9.36 M parameters counted, T = 4, 79.65 % on CIFAR-100, 80.02 % after 400 epochs."""
    return Preset(_cml(spikformer.spikformer_4_384_cifar100), ROWS["cml_spikformer_4_384_cifar100"])


@preset
def cml_spikformer_2_256_cifar10dvs() -> Preset:
    """CML-Spikformer-2-256: 2.57 M parameters, 80.9 % on CIFAR10-DVS at T = 16, 79.2 % at T = 10."""
    return Preset(_cml(spikformer.spikformer_2_256_cifar10dvs), ROWS["cml_spikformer_2_256_cifar10dvs"])


@preset
def cml_spikformer_2_256_dvs128() -> Preset:
    """CML-Spikformer-2-256: 2.57 M parameters, 98.6 % on DVS128 Gesture at T = 16, 97.6 % at T = 10."""
    return Preset(_cml(spikformer.spikformer_2_256_dvs128), ROWS["cml_spikformer_2_256_dvs128"])
