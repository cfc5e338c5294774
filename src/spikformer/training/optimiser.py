"""AdamW as the authors use it: no decay on biases, norms, learnable scales and neurons."""

from __future__ import annotations

import torch

from spikformer.models import SpikingNetwork


def build_optimiser(model: SpikingNetwork, weight_decay: float) -> torch.optim.AdamW:
    """Only matrices and kernels decay, as the model says."""
    kept = model.no_weight_decay()
    learning = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    groups = [
        {
            "params": [parameter for name, parameter in learning.items() if name not in kept],
            "weight_decay": weight_decay,
        },
        {"params": [parameter for name, parameter in learning.items() if name in kept], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups)


def set_learning_rate(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate
