"""The learning rate, step by step: a linear warm-up, half a cosine, a cool-down at its end.

Official: timm's cosine, which does not start after the warm-up but at the beginning, under it.
"""

from __future__ import annotations

from math import cos, pi

from spikformer.training.recipe import Recipe


def learning_rate(recipe: Recipe, epoch: float) -> float:
    """At a moment of training, in epochs from its beginning, with fractions."""
    if epoch >= recipe.epochs:
        return recipe.final_learning_rate
    if epoch < recipe.warmup_epochs:
        rise = recipe.learning_rate - recipe.warmup_learning_rate
        return recipe.warmup_learning_rate + rise * epoch / recipe.warmup_epochs
    swing = recipe.learning_rate - recipe.final_learning_rate
    return recipe.final_learning_rate + swing * (1 + cos(pi * epoch / recipe.epochs)) / 2
