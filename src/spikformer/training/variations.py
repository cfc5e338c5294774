"""What a recipe could do otherwise, one setting at a time: the rows of `spikformer ablate recipe`.

    variations(recipe)      {"recipe": {}, "tet": {"loss": "tet"}, "muon": {"optimiser": "muon"}, …}

The values are settings for `Recipe.override`. What the recipe does already, or cannot do, is left out.
"""

from __future__ import annotations

from typing import Any

from spikformer.config import CONVENTIONAL
from spikformer.data import options_of
from spikformer.training.recipe import Recipe

UNCHANGED = "recipe"
TEACHERS_SHARE = 0.5
"""Of the loss, if a teacher is given and no share."""


def variations(recipe: Recipe, *, taught: bool = False) -> dict[str, dict[str, Any]]:
    """Settings by the name of their row; that of the recipe itself is first. `taught`: there is a teacher."""
    rows: dict[str, dict[str, Any]] = {
        "muon": {"optimiser": "muon"},
        "ema": {"ema_decay": 0.99},
    }
    if recipe.model.neuron == "lif" and recipe.model.tau > 1:
        rows["plif"] = {"model": {"neuron": "plif"}}
    if getattr(recipe.model, "pool_after", None) == "neuron":
        rows["pool_before_neuron"] = {"model": {"pool_after": "norm"}}
    if recipe.model.neuron not in CONVENTIONAL:
        rows["spike_penalty"] = {"spike_penalty": 0.1}
    if recipe.model.time_steps > 1:
        rows["tet"] = {"loss": "tet"}
    if "time_steps" not in options_of(recipe.data_set):  # pictures, not recordings
        rows |= {"whiten": {"whiten": True}, **_of_pictures(recipe)}
    if taught:
        rows["distillation"] = {"distillation": TEACHERS_SHARE}
    changed = {name: settings for name, settings in rows.items() if recipe.override(**settings) != recipe}
    return {UNCHANGED: {}, **changed}


def _of_pictures(recipe: Recipe) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    if (steps := recipe.model.time_steps) > 1 and not recipe.step_schedule:
        rows["step_schedule"] = {"step_schedule": (1, 1, 1, steps)}
    if recipe.augmentation.flip:
        rows["alternate_flip"] = {"augmentation": {"flip": 0.0, "alternate_flip": True}}
    height, width = recipe.model.image_size or (0, 1)
    smaller = height * 3 // 4
    if height == width and smaller and smaller % recipe.model.patch_size == 0 and not recipe.image_schedule:
        rows["image_schedule"] = {"image_schedule": (smaller, height)}
    return rows
