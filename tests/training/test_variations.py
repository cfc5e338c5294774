"""Rows of `ablate recipe`: one change each, valid for the recipe, and none that is no change."""

import pytest

from spikformer.training.recipe import Recipe
from spikformer.training.recipes import get_recipe, list_recipes
from spikformer.training.variations import UNCHANGED, variations


@pytest.mark.parametrize("name", list_recipes())
def test_each_row_is_another_recipe(name: str) -> None:
    recipe = get_recipe(name)
    rows = variations(recipe, taught=True)
    assert next(iter(rows)) == UNCHANGED
    made = [recipe.override(**settings) for settings in rows.values()]
    assert made[0] == recipe
    assert all(one != other for number, one in enumerate(made) for other in made[:number])


def test_all_are_there_where_they_can_be() -> None:
    rows = variations(get_recipe("spikformer_small_cifar10"), taught=True)
    training = {"muon", "ema", "tet", "step_schedule", "image_schedule", "whiten", "alternate_flip", "distillation"}
    assert rows.keys() == training | {UNCHANGED, "plif", "pool_before_neuron", "spike_penalty"}
    assert rows["step_schedule"] == {"step_schedule": (1, 1, 1, 4)}
    assert rows["image_schedule"] == {"image_schedule": (24, 32)}


def test_what_a_recipe_does_or_cannot_do_is_left_out() -> None:
    recipe = get_recipe("spikformer_small_cifar10")
    assert "distillation" not in variations(recipe)
    assert "tet" not in variations(recipe.override(loss="tet"))
    assert "muon" not in variations(recipe.override(optimiser="muon"))
    single: Recipe = recipe.override(model={"time_steps": 1})
    assert not {"tet", "step_schedule"} & variations(single).keys()
    events = variations(get_recipe("spikformer_tiny_digits_dvs"))
    assert not {"whiten", "image_schedule", "step_schedule", "alternate_flip"} & events.keys()
    assert not {"spike_penalty", "plif"} & variations(get_recipe("transformer_small_cifar10")).keys()
