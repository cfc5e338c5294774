"""A plain training loop: AdamW, warm-up and cosine, label smoothing. Enough for the embedded digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from spikformer.data import Split
from spikformer.models import Spikformer


class Epoch(NamedTuple):
    """What one epoch did."""

    number: int
    loss: float
    accuracy: float


def train(
    model: Spikformer, data: Split, *, epochs: int, batch_size: int = 64, learning_rate: float = 5e-3, seed: int = 0
) -> Iterator[Epoch]:
    """Train in place, yielding after every epoch. No weight decay on biases, norms and neurons."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.06}, {"params": others, "weight_decay": 0.0}])
    generator = torch.Generator().manual_seed(seed)
    batches = len(data.labels) // batch_size
    if batches == 0:
        raise ValueError(f"Training needs at least one batch of {batch_size} samples, got {len(data.labels)}.")
    step, total, warm_up = 0, epochs * batches, 2 * batches
    model.train()
    for epoch in range(1, epochs + 1):
        loss_sum = correct = 0.0
        for chosen in torch.randperm(len(data.labels), generator=generator)[: batches * batch_size].split(batch_size):
            cosine = 0.5 * (1 + math.cos(math.pi * step / total))
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * min(1.0, (step + 1) / warm_up) * cosine
            logits = model(data.images[chosen])
            loss = F.cross_entropy(logits, data.labels[chosen], label_smoothing=0.1)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            step += 1
            loss_sum += loss.item()
            correct += (logits.argmax(1) == data.labels[chosen]).sum().item()
        yield Epoch(epoch, loss_sum / batches, correct / (batches * batch_size))


@torch.no_grad()
def evaluate(model: Spikformer, data: Split, batch_size: int = 256) -> float:
    """Share of right answers; leaves the model in the mode it was in."""
    was_training = model.training
    model.eval()
    batches = zip(data.images.split(batch_size), data.labels.split(batch_size), strict=True)
    correct = sum((model(images).argmax(1) == labels).sum().item() for images, labels in batches)
    model.train(was_training)
    return correct / len(data.labels)
