"""SEW-ResNet and its two networks for event cameras."""

from __future__ import annotations

from dataclasses import replace

from spikformer.config import NetworkConfig
from spikformer.data.augmentation import Augmentation
from spikformer.training.recipe import Recipe
from spikformer.training.recipes.registry import Family, rows_of
from spikformer.training.recipes.spikformer import small_cifar


def imagenet(model: NetworkConfig) -> Recipe:
    """ImageNet, from the authors' script: SGD, learning rate 0.1 by a cosine over 320 epochs, batch 32 on 8 GPUs.

    Ours: crops from 0.08 of the area, torchvision's default.
    """
    return Recipe(
        data_set="imagenet",
        model=model,
        augmentation=Augmentation(flip=0.5, crop_scale=(0.08, 1.0)),
        epochs=320,
        batch_size=8 * 32,
        optimiser="sgd",
        learning_rate=0.1,
        final_learning_rate=0.0,
        warmup_epochs=0,
        weight_decay=0.0,
        validation_share=0.02,
    )


def cifar10_dvs(model: NetworkConfig) -> Recipe:
    """CIFAR10-DVS, from the authors' script: SGD, learning rate 0.01 by a cosine over 64 epochs, batch 16."""
    return replace(
        imagenet(model),
        data_set="cifar10dvs",
        augmentation=Augmentation(),
        epochs=64,
        batch_size=16,
        learning_rate=0.01,
        validation_share=0.1,
    )


def dvs128(model: NetworkConfig) -> Recipe:
    """DVS128 Gesture, from the authors' script: SGD, a tenth of the rate every 64 of 192 epochs, 12 of 16 frames."""
    return replace(
        cifar10_dvs(model),
        data_set="dvs128",
        augmentation=Augmentation(num_frames=12),
        epochs=192,
        learning_rate=1e-3,
        schedule="staircase",
        drop_epochs=64,
    )


_FAMILIES: dict[str, Family] = {
    **{f"sew_resnet_{_depth}_imagenet": imagenet for _depth in (18, 34, 50, 101, 152)},
    "sew_resnet_small_cifar10": small_cifar,
    "sew_wide_7b_net_cifar10dvs": cifar10_dvs,
    "sew_7b_net_dvs128": dvs128,
}
ROWS = rows_of(_FAMILIES)
