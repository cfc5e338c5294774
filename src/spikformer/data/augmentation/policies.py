"""The published recipes' augmentation, one constant a data set. None of them crops."""

from typing import get_args

from spikformer.data.augmentation.policy import Augmentation, Colour, Geometric

CIFAR = Augmentation(
    flip=0.5,
    operations=("equalize", "rotate", "shear_x", "translate_x", "translate_y"),
    magnitude=9.0,
    magnitude_std=0.4,
    erase=0.25,
    mixup=0.5,
    label_smoothing=0.1,
)
"""CIFAR-10 and CIFAR-100: timm's rand-m9-n1-mstd0.4-inc1, cut to five operations."""

IMAGENET = Augmentation(
    flip=0.5,
    operations=(*get_args(Geometric), *get_args(Colour)),
    num_operations=2,
    magnitude=9.0,
    magnitude_std=0.5,
    erase=0.25,
    mixup=0.8,
    cutmix=1.0,
    label_smoothing=0.1,
)
"""ImageNet: timm's rand-m9-mstd0.5-inc1, whose n is 2."""

DVS128 = Augmentation(
    operations=("identity", "shear_x", "translate_x", "translate_y", "rotate", "cutout"),
    operation_probability=1.0,
    magnitude=None,
    mixup=0.5,
    mix_probability=0.5,
    label_smoothing=0.1,
)
"""DVS128 Gesture: nothing that swaps left and right, which are classes there."""

CIFAR10_DVS = Augmentation(
    flip=0.5,
    operations=DVS128.operations,
    operation_probability=1.0,
    magnitude=None,
    mixup=0.5,
    mix_probability=0.5,
    label_smoothing=0.1,
)
"""CIFAR10-DVS: the same, and mirror images."""
