"""Known traps: settings that train, and then disappoint. Each is told once, with the reason."""

from __future__ import annotations

from spikformer.data import DataSet
from spikformer.training.recipe import Recipe

_HIGHEST_EVENT_RATE = 0.02


def find_traps(recipe: Recipe, published: Recipe, data: DataSet) -> list[str]:
    """Sentences about what is wrong with a recipe, beside the one it was made from."""
    found = []
    if data.events and recipe.learning_rate >= _HIGHEST_EVENT_RATE:
        found.append(
            f"A learning rate of {recipe.learning_rate:g} on events does not converge: the paper prints 0.1 for them, "
            "but the authors' code, and their word, is 0.001."
        )
    grown, faster = recipe.batch_size / published.batch_size, recipe.learning_rate / published.learning_rate
    if grown != 1 and abs(faster - grown) < 0.01 * grown:
        found.append(
            f"The learning rate was rescaled with the batch size, {faster:g}-fold: the published results do not do "
            f"that, they use {published.learning_rate:g} for any batch."
        )
    mixed = (recipe.augmentation.mixup or recipe.augmentation.cutmix) and recipe.mixes(epoch=0)
    if mixed and not recipe.augmentation.label_smoothing and published.augmentation.label_smoothing:
        found.append(
            "Mixup is on with hard labels: without label smoothing the network is asked for certainty about "
            f"mixtures; the recipe smooths by {published.augmentation.label_smoothing:g}."
        )
    if data.validation is None:
        found.append(
            "There is no validation split, so no epoch is selected and only the last one is reported; the authors "
            "select on the test set, which flatters."
        )
    if recipe.precision == "float16":
        found.append(
            "float16 is for products only: membranes and Q Kᵀ V, whose counts above 2048 it cannot hold, stay in "
            "float32, so it gains less than elsewhere; bfloat16 needs no loss scaling."
        )
    return found
