"""A moving average of weights, and of the statistics of norms: w̄ ← d·w̄ + (1 − d)·w after every step."""

from __future__ import annotations

from copy import deepcopy

import torch

from spikformer.models import SpikingNetwork


class WeightAverage:
    """A copy of a model that follows it. Early on, d is (1 + step)/(10 + step), so that it forgets its beginning."""

    def __init__(self, model: SpikingNetwork, decay: float) -> None:
        self.model = deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: SpikingNetwork, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        weights = model.state_dict()
        for name, average in self.model.state_dict().items():
            if average.is_floating_point():
                average.lerp_(weights[name], 1 - decay)
            else:  # a number of batches
                average.copy_(weights[name])
