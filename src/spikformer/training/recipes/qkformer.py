"""QKFormer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from spikformer.config import NetworkConfig
from spikformer.data.augmentation import IMAGENET
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import spikingformer
from spikformer.training.recipes.registry import Family, rows_of


def cifar(model: NetworkConfig, data_set: str) -> Recipe:
    """CIFAR, from the authors' configuration: Spikingformer's 400 epochs and 10 of cool-down, at twice its rate."""
    return replace(spikingformer.cifar(model, data_set, epochs=400), learning_rate=1e-3)


def imagenet(model: NetworkConfig) -> Recipe:
    """ImageNet, from the authors' script: 200 epochs, three parts of 24 samples on each of 8 GPUs, no mixing.

    The learning rate is 6e-4 for every 256 samples. The batch is in the log of 10-768 alone; that all sizes have it is
    ours, and so is the rate that the warm-up starts from.
    """
    batch_size = 3 * 8 * 24
    return Recipe(
        data_set="imagenet",
        model=model,
        augmentation=replace(IMAGENET, mixup=0.0, cutmix=0.0),
        epochs=200,
        batch_size=batch_size,
        accumulate=3,
        learning_rate=6e-4 * batch_size / 256,
        final_learning_rate=1e-6,
        warmup_epochs=5,
        warmup_learning_rate=1e-6,
        weight_decay=0.05,
        validation_share=0.02,
    )


def events(model: NetworkConfig, data_set: str) -> Recipe:
    """CIFAR10-DVS and DVS128 Gesture, from the authors' scripts: Spikingformer's at a rate of 5e-3, or 1e-3 to 2e-5."""
    recipe = spikingformer.events(model, data_set)
    return (
        replace(recipe, learning_rate=5e-3) if data_set == "cifar10dvs" else replace(recipe, final_learning_rate=2e-5)
    )


_FAMILIES: dict[str, Family] = {
    **{f"qkformer_{_size}_imagenet": imagenet for _size in ("10_384", "10_512", "10_768")},
    **{f"qkformer_4_384_{_set}": partial(cifar, data_set=_set) for _set in ("cifar10", "cifar100")},
    **{f"qkformer_2_256_{_set}": partial(events, data_set=_set) for _set in ("cifar10dvs", "dvs128")},
}
ROWS = rows_of(_FAMILIES)
