"""Max-ResNet."""

from __future__ import annotations

from spikformer.config import MaxResNetConfig
from spikformer.presets.registry import Preset, preset
from spikformer.successors import ROWS

# CIFAR-10 and CIFAR-100: 32×32, 8×8 positions in the last map, T = 4.


@preset
def max_resnet_18_cifar10() -> Preset:
    """Max-ResNet-18: 12.50 M parameters counted, T = 4, 97.17 % on CIFAR-10."""
    return Preset(MaxResNetConfig(), ROWS["max_resnet_18_cifar10"])


@preset
def max_resnet_18_cifar100() -> Preset:
    """Max-ResNet-18: T = 4, 83.06 % on CIFAR-100."""
    return Preset(MaxResNetConfig(num_classes=100), ROWS["max_resnet_18_cifar100"])
