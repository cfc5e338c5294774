"""AdamW as the authors use it: no decay on biases, norms, learnable scales and neurons."""

from __future__ import annotations

import torch
from torch import nn


def build_optimiser(model: nn.Module, weight_decay: float) -> torch.optim.AdamW:
    """Only matrices and kernels decay: everything else that learns has one axis or none."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in learning if parameter.ndim > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in learning if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups)


def set_learning_rate(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate
