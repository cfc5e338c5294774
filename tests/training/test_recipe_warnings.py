"""Warnings about settings: each with its reason, and none about a recipe as it was published."""

from dataclasses import replace

import pytest
from tests.mistakes import shows

from spikformer.data import DataSet, open_dataset
from spikformer.data.augmentation import Augmentation
from spikformer.training import Recipe, get_recipe, list_recipes
from spikformer.training.recipes import recipe_warnings

PLAIN = get_recipe("spikformer_4_384_cifar10")
GESTURES = get_recipe("spikformer_2_256_dvs128")


@pytest.fixture(scope="module")
def events() -> DataSet:
    return open_dataset("digits_dvs")


def find(recipe: Recipe, published: Recipe, data: DataSet) -> str:
    """The one warning, or nothing."""
    traps = recipe_warnings(recipe, published, data)
    assert len(traps) <= 1
    assert all(trap.endswith(".") and "\n" not in trap for trap in traps)
    return traps[0] if traps else ""


@pytest.mark.parametrize("name", list_recipes())
def test_no_published_recipe_is_a_trap(name: str, digits: DataSet, events: DataSet) -> None:
    recipe = get_recipe(name)
    data = events if recipe.model.in_channels == 2 else digits
    assert recipe_warnings(recipe, recipe, data) == []


def test_the_papers_rate_on_events(digits: DataSet, events: DataSet) -> None:
    fast = replace(GESTURES, learning_rate=0.1)
    assert shows(find(fast, GESTURES, events), 0.1, 0.001)
    assert not find(replace(GESTURES, learning_rate=5e-3), GESTURES, events)
    assert not find(replace(PLAIN, learning_rate=0.1), PLAIN, digits), "images are another matter"


@pytest.mark.parametrize("factor", [0.25, 0.5, 2, 8])
def test_a_rate_rescaled_with_the_batch(factor: float, digits: DataSet) -> None:
    batch_size = int(PLAIN.batch_size * factor)
    rescaled = replace(PLAIN, batch_size=batch_size, learning_rate=PLAIN.learning_rate * factor)
    assert shows(find(rescaled, PLAIN, digits), f"{factor:g}-fold", PLAIN.learning_rate)
    assert not find(replace(PLAIN, batch_size=batch_size), PLAIN, digits)
    assert not find(replace(PLAIN, learning_rate=PLAIN.learning_rate * factor), PLAIN, digits)
    assert not find(replace(rescaled, learning_rate=PLAIN.learning_rate * 3), PLAIN, digits)


def test_a_rate_rescaled_by_hand_and_rounded(digits: DataSet) -> None:
    assert shows(find(replace(PLAIN, batch_size=384, learning_rate=1.5e-3), PLAIN, digits), "3-fold")
    assert shows(find(replace(PLAIN, batch_size=96, learning_rate=3.75e-4), PLAIN, digits), "0.75-fold")


@pytest.mark.parametrize("mixing", [{"mixup": 0.5}, {"cutmix": 1.0}, {"mixup": 0.8, "cutmix": 1.0}], ids=str)
def test_mixing_with_hard_labels(mixing: dict, digits: DataSet) -> None:
    hard = replace(PLAIN, augmentation=Augmentation(**mixing))
    assert shows(find(hard, PLAIN, digits), PLAIN.augmentation.label_smoothing)
    assert not find(replace(hard, augmentation=Augmentation(**mixing, label_smoothing=0.05)), PLAIN, digits)
    assert not find(replace(hard, mixing_epochs=0), PLAIN, digits), "it is never on"


def test_hard_labels_without_mixing(digits: DataSet) -> None:
    assert not find(replace(PLAIN, augmentation=Augmentation(), mixing_epochs=None), PLAIN, digits)


def test_no_validation_split(digits: DataSet) -> None:
    assert shows(find(PLAIN, PLAIN, replace(digits, validation=None)), "validation")
    assert not find(PLAIN, PLAIN, digits)


def test_membranes_under_float16(digits: DataSet) -> None:
    assert shows(find(replace(PLAIN, precision="float16"), PLAIN, digits), "float32")
    assert not find(replace(PLAIN, precision="bfloat16"), PLAIN, digits)


def test_all_traps_at_once(events: DataSet) -> None:
    worst = replace(
        GESTURES, learning_rate=0.1, batch_size=1600, augmentation=Augmentation(mixup=1.0), precision="float16"
    )
    assert len(recipe_warnings(worst, GESTURES, replace(events, validation=None))) == 5
