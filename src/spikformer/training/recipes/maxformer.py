"""Max-Former, and Max-ResNet of the same repository."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from spikformer.config import NetworkConfig
from spikformer.training.recipe import Recipe
from spikformer.training.recipes.registry import Family, rows_of
from spikformer.training.recipes.spikingformer import WHOLE_RANDAUGMENT


def cifar(model: NetworkConfig, data_set: str) -> Recipe:
    """CIFAR, from Max-Former's configurations: 400 epochs and 10 of cool-down, mixup and cutmix, batch 128 (100: 64).

    Of Max-ResNet nobody prints a recipe; that it has this one is ours.
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


_FAMILIES: dict[str, Family] = {
    f"max_resnet_18_{_data_set}": partial(cifar, data_set=_data_set) for _data_set in ("cifar10", "cifar100")
}
ROWS = rows_of(_FAMILIES)
