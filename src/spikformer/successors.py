"""What the authors of Spikformer's successors and of its baseline report of their networks, once: by preset.

    ROWS["spikingformer_8_512_imagenet"].accuracy_percent

Spikingformer and CML from the READMEs of zhouchenlin2096/Spikingformer and Spikingformer-CML, whose numbers of
parameters leave out layer norms that are never used, and are CIFAR-10's for both CIFAR sets; the
Spike-driven Transformer from the README of BICLab/Spike-Driven-Transformer (ImageNet), Fancyssc/STEP, which quotes it
(CIFAR and CIFAR10-DVS), and its paper (DVS128 Gesture). QKFormer from the README of zhouchenlin2096/QKFormer
(ImageNet), STEP (CIFAR and CIFAR10-DVS) and its paper (DVS128 Gesture); Max-Former from the training logs in
bic-L/MaxFormer, at the best epoch, Max-ResNet and the parameters of the largest Max-Former from its README. SEW-ResNet
from its paper; what it computes and spends on ImageNet is Spikformer's Tab. 2. Of the successors, Spikingformer alone
is listed with both operations and energy; an energy alone fits any network at some firing rate.
"""

from __future__ import annotations

from typing import NamedTuple

from spikformer.paper import BASELINE, PaperRow

ROWS: dict[str, PaperRow] = {
    # Spikingformer
    "spikingformer_8_384_imagenet": PaperRow(16.81, 72.45, 3.88, 4.69),
    "spikingformer_8_512_imagenet": PaperRow(29.68, 74.79, 6.52, 7.46),
    "spikingformer_8_768_imagenet": PaperRow(66.34, 75.85, 12.54, 13.68),
    "spikingformer_4_256_cifar10": PaperRow(4.15, 94.77),
    "spikingformer_2_384_cifar10": PaperRow(5.76, 95.22),
    "spikingformer_4_384_cifar10": PaperRow(9.32, 95.61),
    "spikingformer_4_256_cifar100": PaperRow(None, 77.43),
    "spikingformer_2_384_cifar100": PaperRow(None, 78.34),
    "spikingformer_4_384_cifar100": PaperRow(None, 79.09),
    "spikingformer_2_256_cifar10dvs": PaperRow(2.57, 81.30),
    "spikingformer_2_256_dvs128": PaperRow(2.57, 98.30),
    # Spikingformer with CML
    "cml_spikingformer_8_384_imagenet": PaperRow(16.81, 74.35),
    "cml_spikingformer_8_512_imagenet": PaperRow(29.68, 76.54),
    "cml_spikingformer_8_768_imagenet": PaperRow(66.34, 77.64),
    "cml_spikingformer_4_256_cifar10": PaperRow(4.15, 94.94),
    "cml_spikingformer_2_384_cifar10": PaperRow(5.76, 95.54),
    "cml_spikingformer_4_384_cifar10": PaperRow(9.32, 95.81),
    "cml_spikingformer_4_256_cifar100": PaperRow(None, 78.19),
    "cml_spikingformer_2_384_cifar100": PaperRow(None, 78.87),
    "cml_spikingformer_4_384_cifar100": PaperRow(None, 79.98),
    "cml_spikingformer_2_256_cifar10dvs": PaperRow(2.57, 81.40),
    "cml_spikingformer_2_256_dvs128": PaperRow(2.57, 98.60),
    # Spikformer with CML
    "cml_spikformer_8_384_imagenet": PaperRow(16.81, 72.73),
    "cml_spikformer_8_512_imagenet": PaperRow(29.68, 75.61),
    "cml_spikformer_8_768_imagenet": PaperRow(66.34, 77.34),
    "cml_spikformer_4_256_cifar10": PaperRow(4.15, 94.82),
    "cml_spikformer_2_384_cifar10": PaperRow(5.76, 95.63),
    "cml_spikformer_4_384_cifar10": PaperRow(9.32, 95.93),
    "cml_spikformer_4_256_cifar100": PaperRow(None, 77.64),
    "cml_spikformer_2_384_cifar100": PaperRow(None, 78.75),
    "cml_spikformer_4_384_cifar100": PaperRow(None, 79.65),
    "cml_spikformer_2_256_cifar10dvs": PaperRow(2.57, 80.90),
    "cml_spikformer_2_256_dvs128": PaperRow(2.57, 98.60),
    # Spike-driven Transformer
    "spike_driven_transformer_8_384_imagenet": PaperRow(None, 72.28, energy_mj=3.90),
    "spike_driven_transformer_6_512_imagenet": PaperRow(None, 74.11, energy_mj=3.56),
    "spike_driven_transformer_8_512_imagenet": PaperRow(None, 74.57, energy_mj=4.50),
    "spike_driven_transformer_10_512_imagenet": PaperRow(None, 74.66, energy_mj=5.53),
    "spike_driven_transformer_8_768_imagenet": PaperRow(None, 77.07, energy_mj=6.09),
    "spike_driven_transformer_2_512_cifar10": PaperRow(None, 95.60),
    "spike_driven_transformer_2_512_cifar100": PaperRow(None, 78.40),
    "spike_driven_transformer_2_256_cifar10dvs": PaperRow(None, 80.00),
    "spike_driven_transformer_2_256_dvs128": PaperRow(None, 99.30),
    # Max-ResNet
    "max_resnet_18_cifar10": PaperRow(None, 97.17),
    "max_resnet_18_cifar100": PaperRow(None, 83.06),
    # SEW-ResNet, and SEW's networks for events
    "sew_resnet_18_imagenet": PaperRow(None, 63.18),
    **BASELINE,
    "sew_wide_7b_net_cifar10dvs": PaperRow(None, 74.40),
    "sew_7b_net_dvs128": PaperRow(None, 97.92),
    # QKFormer, all with samples that leak into each other
    "qkformer_10_384_imagenet": PaperRow(16.47, 78.80),
    "qkformer_10_512_imagenet": PaperRow(29.08, 82.04),
    "qkformer_10_768_imagenet": PaperRow(64.96, 84.22),
    "qkformer_4_384_cifar10": PaperRow(None, 96.18),
    "qkformer_4_384_cifar100": PaperRow(None, 81.15),
    "qkformer_2_256_cifar10dvs": PaperRow(None, 84.00),
    "qkformer_2_256_dvs128": PaperRow(None, 98.60),
    # Max-Former
    "maxformer_10_384_imagenet": PaperRow(None, 77.78),
    "maxformer_10_512_imagenet": PaperRow(None, 75.43),
    "maxformer_10_768_imagenet": PaperRow(63.99, 82.39),
    "maxformer_4_384_cifar10": PaperRow(None, 97.04),
    "maxformer_4_384_cifar100": PaperRow(None, 82.65),
    "maxformer_2_256_cifar10dvs": PaperRow(None, 84.20),
    "maxformer_2_256_dvs128": PaperRow(None, 98.61),
}

ACCURACY_AFTER_400_EPOCHS = {
    "spikingformer_4_384_cifar10": 95.81,
    "spikingformer_4_384_cifar100": 79.21,
    "cml_spikingformer_4_384_cifar10": 95.95,
    "cml_spikingformer_4_384_cifar100": 80.37,
    "cml_spikformer_4_384_cifar10": 96.04,
    "cml_spikformer_4_384_cifar100": 80.02,
}

ACCURACY_AT_10_STEPS = {
    "spikingformer_2_256_cifar10dvs": 79.9,
    "spikingformer_2_256_dvs128": 96.2,
    "cml_spikingformer_2_256_cifar10dvs": 80.5,
    "cml_spikingformer_2_256_dvs128": 97.2,
    "cml_spikformer_2_256_cifar10dvs": 79.2,
    "cml_spikformer_2_256_dvs128": 97.6,
}
"""On event cameras, whose rows are at T = 16."""

ACCURACY_AT_1_STEP = {"maxformer_10_768_imagenet": 78.6}
"""On ImageNet, whose row is at T = 4; a network of its own."""

ACCURACY_AT_288 = {"cml_spikingformer_8_768_imagenet": 78.46, "qkformer_10_768_imagenet": 85.25}
"""At 288×288 pixels instead of 224×224."""

ACCURACY_AT_384 = {"qkformer_10_768_imagenet": 85.65}
"""At 384×384 pixels."""

ACCURACY_IN_LOGS = {
    "qkformer_4_384_cifar10": 96.21,
    "qkformer_4_384_cifar100": 81.22,
    "qkformer_2_256_cifar10dvs": 84.1,
}
"""Of the authors' training logs, where they differ from the row."""


class CountedParameters(NamedTuple):
    """How many parameters the authors' code builds, and how many of these its network never uses."""

    total: int
    unused: int = 0


COUNTED_PARAMETERS = {
    # layer norms in each block are never used
    "spikingformer_8_384_imagenet": CountedParameters(16_828_312, 12_288),
    "spikingformer_8_512_imagenet": CountedParameters(29_705_768, 16_384),
    "spikingformer_8_768_imagenet": CountedParameters(66_363_208, 24_576),
    "spikingformer_4_256_cifar10": CountedParameters(4_156_202, 4_096),
    "spikingformer_2_384_cifar10": CountedParameters(5_765_818, 3_072),
    "spikingformer_4_384_cifar10": CountedParameters(9_326_266, 6_144),
    "spikingformer_2_256_cifar10dvs": CountedParameters(2_568_714, 2_048),
    # a mixing of 8 heads in each block is never used
    "spike_driven_transformer_8_384_imagenet": CountedParameters(16_816_536, 512),
    "spike_driven_transformer_6_512_imagenet": CountedParameters(23_373_736, 384),
    "spike_driven_transformer_8_512_imagenet": CountedParameters(29_689_896, 512),
    "spike_driven_transformer_10_512_imagenet": CountedParameters(36_006_056, 640),
    "spike_driven_transformer_8_768_imagenet": CountedParameters(66_339_144, 512),
    "spike_driven_transformer_2_256_cifar10": CountedParameters(2_567_082, 128),
    "spike_driven_transformer_2_512_cifar10": CountedParameters(10_233_546, 128),
    "spike_driven_transformer_2_256_dvs128": CountedParameters(2_567_051, 128),
    "qkformer_10_384_imagenet": CountedParameters(16_473_688),
    "qkformer_10_512_imagenet": CountedParameters(29_079_336),
    "qkformer_10_768_imagenet": CountedParameters(64_962_760),
    "qkformer_4_384_cifar10": CountedParameters(6_706_234),
    "qkformer_2_256_cifar10dvs": CountedParameters(1_504_138),
    "qkformer_2_256_dvs128": CountedParameters(1_999_371),
    "maxformer_10_384_imagenet": CountedParameters(16_237_240),
    "maxformer_10_512_imagenet": CountedParameters(28_653_480),
    "maxformer_10_768_imagenet": CountedParameters(63_992_200),
    "maxformer_4_384_cifar10": CountedParameters(6_568_282),
    "maxformer_2_256_cifar10dvs": CountedParameters(1_455_626),
    "sew_resnet_18_imagenet": CountedParameters(11_689_512),
    "sew_resnet_34_imagenet": CountedParameters(21_797_672),
    "sew_resnet_50_imagenet": CountedParameters(25_557_032),
    "sew_resnet_101_imagenet": CountedParameters(44_549_160),
    "sew_resnet_152_imagenet": CountedParameters(60_192_808),
    "sew_wide_7b_net_cifar10dvs": CountedParameters(1_192_218),
    "sew_7b_net_dvs128": CountedParameters(130_426),
}
"""Where the authors' code was counted; CML changes no size."""
