"""Recipes by name: which preset each trains, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from spikformer.config import NetworkConfig
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
