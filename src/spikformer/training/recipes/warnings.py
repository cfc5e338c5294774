"""Settings that train and then disappoint."""

from __future__ import annotations

from spikformer.data import DataSet
from spikformer.training.recipe import Recipe

_HIGHEST_EVENT_RATE = 0.02


def recipe_warnings(recipe: Recipe, published: Recipe, data: DataSet) -> list[str]:
    """Settings that train and then disappoint, with the reasons; `published` is what they were changed from."""
    found = []
    if data.events and recipe.learning_rate >= _HIGHEST_EVENT_RATE:
        found.append(
            f"A learning rate of {recipe.learning_rate:g} does not converge on event data: the paper prints 0.1, but "
            "the authors' code, and their reply to questions, is 0.001."
        )
    grown, faster = recipe.batch_size / published.batch_size, recipe.learning_rate / published.learning_rate
    if grown != 1 and abs(faster - grown) < 0.01 * grown:
        found.append(
            f"The learning rate was rescaled with the batch size, {faster:g}-fold: the published results use "
            f"{published.learning_rate:g} for any batch size."
        )
    mixed = (recipe.augmentation.mixup or recipe.augmentation.cutmix) and recipe.mixes(epoch=0)
    if mixed and not recipe.augmentation.label_smoothing and published.augmentation.label_smoothing:
        found.append(
            "Mixup with hard labels: without label smoothing the network is trained to be certain about mixtures; the "
            f"recipe smooths by {published.augmentation.label_smoothing:g}."
        )
    if data.validation is None:
        found.append(
            "There is no validation split, so no best epoch is selected and only the last one is reported. The "
            "authors select on the test set, which overestimates accuracy."
        )
    if recipe.precision == "float16":
        found.append(
            "float16 applies to matrix products only: membranes and Q Kᵀ V, with counts above 2048, stay in float32, "
            "so the gain is small; bfloat16 needs no loss scaling."
        )
    return found
