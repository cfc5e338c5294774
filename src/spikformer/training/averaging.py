"""A moving average of weights: w̄ ← d·w̄ + (1 − d)·w after every step; buffers are taken as they are."""

from __future__ import annotations

from copy import deepcopy

import torch

from spikformer.models import Spikformer


class WeightAverage:
    """A copy of a model that follows it. Early on, d is (1 + step)/(10 + step), so that it forgets its beginning."""

    def __init__(self, model: Spikformer, decay: float) -> None:
        self.model = deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: Spikformer, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        averages, weights = self.model.state_dict(), model.state_dict()
        learned = {name for name, _ in model.named_parameters()}
        for name, average in averages.items():
            if name in learned:
                average.lerp_(weights[name], 1 - decay)
            else:
                average.copy_(weights[name])
