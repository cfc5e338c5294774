"""A recipe raises for what it cannot mean, and survives JSON."""

import json
from dataclasses import fields, replace
from math import inf, nan
from typing import Any

import pytest
from tests.mistakes import field_error, mistake

from spikformer.config import ModelConfig, SpikeDrivenConfig
from spikformer.data.augmentation import Augmentation
from spikformer.errors import FieldError
from spikformer.models.registry import get_architecture
from spikformer.training import Recipe, get_recipe, list_recipes
from spikformer.training.recipe import completed, flat_settings

pytestmark = pytest.mark.core

ARCHITECTURES = ("spikformer", "spikingformer", "spike_driven_transformer")
LATER_THAN_0_1 = {"architecture", "preprocessing", "max_samples", "freeze", "patience", "optimiser", "schedule"}
LATER_THAN_0_1 |= {"drop_epochs", "loss", "tet_lambda", "distillation", "distillation_temperature", "spike_penalty"}
LATER_THAN_0_1 |= {"penalty_epochs", "step_schedule", "image_schedule", "whiten"}

WRONG = [
    {"epochs": 0},
    {"epochs": 2.5},
    {"epochs": True},
    {"epochs": 2**63},
    {"cooldown_epochs": -1},
    {"batch_size": 0},
    {"accumulate": 0},
    {"seed": -1},
    {"seed": 2**63},
    {"learning_rate": 0.0},
    {"learning_rate": nan},
    {"learning_rate": inf},
    {"learning_rate": "fast"},
    {"learning_rate": True},
    {"final_learning_rate": -1e-9},
    {"warmup_learning_rate": -1.0},
    {"warmup_epochs": -0.5},
    {"weight_decay": -0.1},
    {"clip_gradient": 0},
    {"ema_decay": 1.0},
    {"ema_decay": 0},
    {"ema_decay": nan},
    {"ema_decay": "slow"},
    {"validation_share": 1.0},
    {"validation_share": None},
    {"precision": "float8"},
    {"optimiser": "adam"},
    {"schedule": "linear"},
    {"drop_epochs": 3},
    {"drop_epochs": 0, "schedule": "staircase"},
    {"drop_epochs": None, "schedule": "staircase"},
    {"loss": "hinge"},
    {"tet_lambda": 0.5},
    {"tet_lambda": 2.0, "loss": "tet"},
    {"model": Augmentation()},
    {"max_samples": 0},
    {"patience": -1},
    {"freeze": "stem.*"},
    {"sync_norms": 1},
    {"compile": "no"},
    {"data_set": 3},
    {"mixing_epochs": -1, "augmentation": Augmentation(mixup=0.5)},
    {"mixing_epochs": 3},
]


@pytest.mark.parametrize("settings", WRONG, ids=str)
def test_a_wrong_setting_raises_with_its_name(settings: dict[str, Any]) -> None:
    with pytest.raises(FieldError) as caught:
        Recipe(**settings)
    assert caught.value.field == next(iter(settings))
    assert "\n" not in str(caught.value)


def test_large_counts_of_samples_and_seeds_are_fine() -> None:
    assert Recipe(max_samples=1_281_167, seed=2**62).max_samples == 1_281_167


@pytest.mark.parametrize("name", [field.name for field in fields(Recipe)])
@pytest.mark.parametrize("value", [10**400, -(10**5000), ["\x1b"] * 10_000], ids=["large", "small", "list"])
def test_a_value_of_any_length_is_a_short_message(name: str, value: object) -> None:
    with field_error(name) as caught:
        Recipe.from_dict({**Recipe().to_dict(), name: value})
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


def test_a_field_of_any_length_is_a_short_message() -> None:
    with pytest.raises(FieldError) as caught:
        Recipe.from_dict({**Recipe().to_dict(), "\x1b" * 10_000: 1})
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", list_recipes())
def test_every_recipe_survives_json(name: str) -> None:
    recipe = get_recipe(name)
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_nothing_may_be_missing_or_added_or_misspelt() -> None:
    values = Recipe().to_dict()
    for name in values.keys() - LATER_THAN_0_1:
        with pytest.raises(FieldError) as caught:
            Recipe.from_dict({other: value for other, value in values.items() if other != name})
        assert caught.value.field == name
    with pytest.raises(FieldError) as caught:
        Recipe.from_dict({**values, "lr": 0.1})
    assert caught.value.field == "lr"


@pytest.mark.parametrize("name", ["architecture", "model", "augmentation", "preprocessing"])
@pytest.mark.parametrize("value", [None, 3, "x", {"flux": 1}, [1]])
def test_parts_that_are_none_raise(name: str, value: object) -> None:
    with mistake(ValueError) as caught:
        Recipe.from_dict({**Recipe().to_dict(), name: value})
    assert len(str(caught.value)) < 500


def test_mixing_stops_after_its_epochs_and_never_without_them() -> None:
    recipe = Recipe(augmentation=Augmentation(cutmix=1.0), epochs=4, cooldown_epochs=2, mixing_epochs=3)
    assert recipe.total_epochs == 6
    assert [recipe.mixes(epoch) for epoch in range(6)] == [True, True, True, False, False, False]
    assert all(replace(recipe, mixing_epochs=None).mixes(epoch) for epoch in range(6))
    assert not replace(recipe, mixing_epochs=0).mixes(0)


def test_a_recipe_cannot_be_changed_and_says_whether_it_is_another() -> None:
    recipe = Recipe()
    with pytest.raises(AttributeError):
        recipe.epochs = 3
    assert recipe == Recipe()
    assert recipe != replace(recipe, model=ModelConfig(depth=2))


def test_overrides_reach_the_parts_and_come_back_as_changes() -> None:
    recipe = get_recipe("spikformer_4_384_cifar10")
    changes = {"epochs": 7, "model": {"time_steps": 2, "image_size": (48, 32)}, "augmentation": {"flip": 0.1}}
    changed = recipe.override(**changes)
    assert (changed.epochs, changed.model.time_steps, changed.augmentation.flip) == (7, 2, 0.1)
    assert changed.model.depth == recipe.model.depth
    assert changed.changes_from(recipe) == changes
    assert recipe.changes_from(recipe) == {}
    assert recipe.override(model=ModelConfig(depth=2)).model == ModelConfig(depth=2)


@pytest.mark.parametrize(
    ("changes", "field", "nearest"),
    [
        ({"epoch": 7}, "epoch", "'epochs'"),
        ({"model": {"time_step": 2}}, "time_step", "'time_steps'"),
        ({"augmentation": {"flips": 1}}, "flips", "'flip'"),
    ],
)
def test_a_misspelt_override_raises_with_the_nearest(changes: dict[str, object], field: str, nearest: str) -> None:
    with field_error(field, nearest):
        Recipe().override(**changes)


@pytest.mark.parametrize("name", list_recipes())
def test_every_recipe_is_reached_from_every_other_by_its_changes(name: str) -> None:
    recipe = get_recipe(name)
    assert Recipe().override(**recipe.changes_from(Recipe())) == recipe


def test_settings_flatten_to_dotted_names() -> None:
    assert flat_settings({"a": 1, "model": {"depth": 2}}) == {"a": 1, "model.depth": 2}


def test_recipes_of_version_0_1_are_read() -> None:
    values = {name: value for name, value in Recipe().to_dict().items() if name not in LATER_THAN_0_1}
    assert Recipe.from_dict(values) == Recipe()
    assert isinstance(Recipe.from_dict(values).model, ModelConfig)
    assert completed(values) == completed(completed(values))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_recipe_carries_any_architecture(name: str) -> None:
    config = get_architecture(name).config_type(depth=1)
    recipe = Recipe().override(model=config, epochs=3)
    assert recipe.to_dict()["architecture"] == name
    back = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert back == recipe
    assert type(back.model) is type(config)
    assert recipe.override(model={"depth": 2}).model == config.override(depth=2)
    assert recipe.override(model={"depth": 2}).changes_from(recipe) == {"model": {"depth": 2}}
    assert Recipe().override(**recipe.changes_from(Recipe())) == recipe


def test_a_setting_of_another_architecture_raises_with_this_one_and_its_settings() -> None:
    recipe = Recipe(model=SpikeDrivenConfig())
    with pytest.raises(FieldError) as caught:
        recipe.override(model={"pool_after": "norm"})
    assert caught.value.field == "pool_after"
    assert "spike_driven_transformer" in str(caught.value)
    assert all(field.name in str(caught.value) for field in fields(SpikeDrivenConfig))
