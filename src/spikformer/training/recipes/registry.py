"""Recipes by name: which preset each trains, and how; and warnings about changes of one that disappoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from spikformer.config import NetworkConfig
from spikformer.data import DataSet
from spikformer.errors import UnknownNameError
from spikformer.presets import get_preset
from spikformer.training.recipe import Recipe

Family = Callable[[NetworkConfig], Recipe]
"""How models of a kind are trained; its docstring says where that comes from."""


class Row(NamedTuple):
    """How a preset is trained."""

    preset: str
    family: Family
    pretrained: str | None = None
    """The data set of the weights that training starts from; None starts from random ones."""


_ROWS: dict[str, Row] = {}
_HIGHEST_EVENT_RATE = 0.02


def register(rows: Mapping[str, Row]) -> None:
    _ROWS.update(rows)


def rows_of(families: Mapping[str, Family]) -> dict[str, Row]:
    """Rows of recipes that are called as their presets."""
    return {name: Row(name, family) for name, family in families.items()}


def list_recipes() -> list[str]:
    return list(_ROWS)


def get_recipe(name: str) -> Recipe:
    """The recipe of that name."""
    row = _row(name)
    return row.family(get_preset(row.preset).config)


def pretrained_on(name: str) -> str | None:
    """The data set whose weights a recipe must start from; None for one that starts from random weights."""
    return _row(name).pretrained


def recipe_summary(name: str) -> str:
    """The first sentence about a recipe's family."""
    family = _row(name).family
    doc = (family.func if isinstance(family, partial) else family).__doc__ or ""
    return doc.split("\n", 1)[0]


def _row(name: str) -> Row:
    if name not in _ROWS:
        raise UnknownNameError("recipe", name, _ROWS, "`spikformer models --recipes` lists them.")
    return _ROWS[name]


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
