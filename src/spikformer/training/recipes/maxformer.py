"""Max-Former, and MS-QKFormer and Max-ResNet of the same repository."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from spikformer.config import NetworkConfig
from spikformer.data.augmentation import IMAGENET
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import spikformer as paper
from spikformer.training.recipes import spikingformer
from spikformer.training.recipes.registry import Family, Row, rows_of
from spikformer.training.recipes.spikingformer import WHOLE_RANDAUGMENT


def cifar(model: NetworkConfig, data_set: str) -> Recipe:
    """CIFAR, from Max-Former's configurations: 400 epochs and 10 of cool-down, mixup and cutmix, batch 128 (100: 64).

    No recipe is published for MS-QKFormer and Max-ResNet; that they have this one is our choice.
    """
    recipe = Recipe(
        data_set=data_set,
        model=model,
        augmentation=replace(WHOLE_RANDAUGMENT, cutmix=0.5),
        epochs=400,
        cooldown_epochs=10,
        mixing_epochs=200,
        batch_size=128,
        learning_rate=1.5e-3,
        warmup_learning_rate=8e-5,
    )
    if data_set == "cifar10":
        return recipe
    longer = replace(recipe.augmentation, mixup=0.75)
    return replace(recipe, augmentation=longer, mixing_epochs=250, batch_size=64, warmup_learning_rate=1e-5)


def imagenet(model: NetworkConfig, mixup: float) -> Recipe:
    """ImageNet, from Max-Former's configurations: 200 epochs, 64 samples on each of 8 GPUs, half of the batches mixed.

    The learning rate is 1.35e-3 for every 256 samples, 1.2e-3 at T = 1. Ours: which of the printed α of mixup belongs
    to which size, label smoothing, the learning rates at both ends, and MS-QKFormer's recipe, which is this one.
    """
    batch_size = 8 * 64
    return Recipe(
        data_set="imagenet",
        model=model,
        augmentation=replace(IMAGENET, mixup=mixup, mix_probability=0.5),
        epochs=200,
        batch_size=batch_size,
        learning_rate=(1.2e-3 if model.time_steps == 1 else 1.35e-3) * batch_size / 256,
        final_learning_rate=1e-6,
        warmup_epochs=5,
        warmup_learning_rate=1e-6,
        weight_decay=0.05,
        validation_share=0.02,
    )


def imagenet_in_one_step(model: NetworkConfig) -> Recipe:
    """ImageNet at T = 1, from Max-Former's configuration; the rest as at T = 4."""
    return imagenet(model.override(time_steps=1), mixup=0.8)


def events(model: NetworkConfig, data_set: str) -> Recipe:
    """CIFAR10-DVS and DVS128 Gesture, from Max-Former's script: batch 16, 96 epochs (150), mixup and cutmix.

    Ours: the augmentation beside these two, which is Spikformer's, and that 150 epochs are of the gestures.
    """
    recipe = spikingformer.events(model, data_set)
    epochs = 96 if data_set == "cifar10dvs" else 150
    return replace(recipe, augmentation=replace(recipe.augmentation, cutmix=0.1), epochs=epochs, learning_rate=5e-3)


_MIXUP = {"10_384": 0.25, "10_512": 0.4, "10_768": 0.8}
_FAMILIES: dict[str, Family] = {
    "maxformer_tiny_digits": partial(paper.digits, data_set="digits"),
    "maxformer_tiny_digits_dvs": partial(paper.digits, data_set="digits_dvs"),
    "maxformer_small_cifar10": paper.small_cifar,
}
for _network in ("maxformer_4_384", "ms_qkformer_4_384", "max_resnet_18"):
    _FAMILIES |= {f"{_network}_{_set}": partial(cifar, data_set=_set) for _set in ("cifar10", "cifar100")}
for _network in ("maxformer", "ms_qkformer"):
    _FAMILIES |= {f"{_network}_{_size}_imagenet": partial(imagenet, mixup=_alpha) for _size, _alpha in _MIXUP.items()}
_FAMILIES |= {f"maxformer_2_256_{_set}": partial(events, data_set=_set) for _set in ("cifar10dvs", "dvs128")}
ROWS = rows_of(_FAMILIES) | {
    "maxformer_10_768_imagenet_t1": Row("maxformer_10_768_imagenet", imagenet_in_one_step),
}
