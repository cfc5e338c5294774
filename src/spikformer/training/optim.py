"""AdamW as the authors use it, its learning rate at every iteration, and a moving average of the weights."""

from __future__ import annotations

from copy import deepcopy
from math import cos, pi

import torch
from torch import nn

from spikformer.models import Spikformer
from spikformer.training.recipe import Recipe


def build_optimiser(model: nn.Module, weight_decay: float) -> torch.optim.AdamW:
    """AdamW over what learns. Only matrices and kernels decay; biases, norms, scales and neurons do not."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in learning if parameter.ndim > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in learning if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups)


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

    def __init__(self, model: Spikformer, decay: float) -> None:
        self.model = deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: Spikformer, iteration: int) -> None:
        decay = min(self.decay, (1 + iteration) / (10 + iteration))
        weights = model.state_dict()
        for name, average in self.model.state_dict().items():
            if average.is_floating_point():
                average.lerp_(weights[name], 1 - decay)
            else:  # a count of batches
                average.copy_(weights[name])
