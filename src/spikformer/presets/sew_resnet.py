"""SEW-ResNet, and SEW's two networks for event cameras, joined by sums; `join="and"` and `"iand"` are overrides."""

from __future__ import annotations

from spikformer.config import SEWEventConfig, SEWResNetConfig
from spikformer.presets.registry import Preset, preset
from spikformer.successors import ROWS

# ImageNet: 224×224, 7×7 positions in the last map, T = 4. OPs and mJ are Spikformer's Tab. 2.


@preset
def sew_resnet_18_imagenet() -> Preset:
    """SEW-ResNet-18: 11.69 M parameters counted, T = 4, 63.18 % top-1."""
    return Preset(SEWResNetConfig(), ROWS["sew_resnet_18_imagenet"])


@preset
def sew_resnet_34_imagenet() -> Preset:
    """SEW-ResNet-34: 21.79 M parameters, T = 4, 67.04 % top-1, 3.88 G OPs, 4.035 mJ."""
    return Preset(SEWResNetConfig(depths=(3, 4, 6, 3)), ROWS["sew_resnet_34_imagenet"])


def _bottleneck(*depths: int) -> SEWResNetConfig:
    return SEWResNetConfig(depths=depths, block="bottleneck")


@preset
def sew_resnet_50_imagenet() -> Preset:
    """SEW-ResNet-50: 25.56 M parameters, T = 4, 67.78 % top-1, 4.83 G OPs, 4.890 mJ."""
    return Preset(_bottleneck(3, 4, 6, 3), ROWS["sew_resnet_50_imagenet"])


@preset
def sew_resnet_101_imagenet() -> Preset:
    """SEW-ResNet-101: 44.55 M parameters, T = 4, 68.76 % top-1, 9.30 G OPs, 8.913 mJ."""
    return Preset(_bottleneck(3, 4, 23, 3), ROWS["sew_resnet_101_imagenet"])


@preset
def sew_resnet_152_imagenet() -> Preset:
    """SEW-ResNet-152: 60.19 M parameters, T = 4, 69.26 % top-1, 13.72 G OPs, 12.891 mJ."""
    return Preset(_bottleneck(3, 8, 36, 3), ROWS["sew_resnet_152_imagenet"])


# CIFAR-10: ours, for the authors have none.


@preset
def sew_resnet_small_cifar10() -> Preset:
    """SEW-ResNet-14 of our own, narrow enough for a CPU: 0.70 M parameters, T = 4; 3×3 stem without stride or pool."""
    return Preset(
        SEWResNetConfig(
            image_size=(32, 32),
            num_classes=10,
            widths=(32, 64, 128),
            depths=(2, 2, 2),
            stem_kernel_size=3,
            stem_stride=1,
            stem_pool=False,
        )
    )


# Event cameras: 128×128, two polarities, T = 16; seven pools leave one position.


@preset
def sew_wide_7b_net_cifar10dvs() -> Preset:
    """SEW-7B-128 (Wide-7B-Net): 1.19 M parameters counted, T = 16, 74.40 % on CIFAR10-DVS."""
    config = SEWEventConfig(num_classes=10, widths=(64, 64, 64, 64, 128, 128, 128))
    return Preset(config, ROWS["sew_wide_7b_net_cifar10dvs"])


@preset
def sew_7b_net_dvs128() -> Preset:
    """SEW-7B-32 (7B-Net): 0.13 M parameters counted, T = 16, 97.92 % on DVS128 Gesture."""
    return Preset(SEWEventConfig(), ROWS["sew_7b_net_dvs128"])
