"""AdamW as the authors use it, its learning rate at every iteration, and a moving average of the weights."""

from __future__ import annotations

from copy import deepcopy
from math import cos, pi

import torch

from spikformer.models import SpikingNetwork
from spikformer.training.recipe import Recipe


def build_optimiser(model: SpikingNetwork, weight_decay: float) -> torch.optim.AdamW:
    """AdamW over what learns. Only matrices and kernels decay, as the model says."""
    kept = model.no_weight_decay()
    learning = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    decaying = [parameter for name, parameter in learning.items() if name not in kept]
    others = [parameter for name, parameter in learning.items() if name in kept]
    return torch.optim.AdamW(
        [{"params": decaying, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    )


def set_learning_rate(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate


def learning_rate(recipe: Recipe, epoch: float) -> float:
    """Linear warm-up, half a cosine, constant cool-down; `epoch` counts from the start of training, with fractions.

    Official: timm's cosine, which does not start after the warm-up but at epoch 0, underneath it.
    """
    if epoch >= recipe.epochs:
        return recipe.final_learning_rate
    if epoch < recipe.warmup_epochs:
        rise = recipe.learning_rate - recipe.warmup_learning_rate
        return recipe.warmup_learning_rate + rise * epoch / recipe.warmup_epochs
    swing = recipe.learning_rate - recipe.final_learning_rate
    return recipe.final_learning_rate + swing * (1 + cos(pi * epoch / recipe.epochs)) / 2


class WeightAverage:
    """A moving average of weights and of norms' statistics: w̄ ← d·w̄ + (1 − d)·w after every iteration.

    Early on d is (1 + iteration)/(10 + iteration), so that the initial weights are soon forgotten.
    torch.optim.swa_utils has no such warm-up: its first update copies the weights.
    """

    def __init__(self, model: SpikingNetwork, decay: float) -> None:
        self.model = deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: SpikingNetwork, iteration: int) -> None:
        decay = min(self.decay, (1 + iteration) / (10 + iteration))
        weights = model.state_dict()
        for name, average in self.model.state_dict().items():
            if average.is_floating_point():
                average.lerp_(weights[name], 1 - decay)
            else:  # a count of batches
                average.copy_(weights[name])
