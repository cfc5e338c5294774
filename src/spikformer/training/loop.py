"""A plain training loop: AdamW, warm-up and cosine, label smoothing. Enough for the embedded digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.data import DataSet
from spikformer.models import Spikformer


class Epoch(NamedTuple):
    """What one epoch did."""

    number: int
    loss: float
    accuracy: float


def train(
    model: Spikformer, data: DataSet, *, epochs: int, batch_size: int = 64, learning_rate: float = 5e-3, seed: int = 0
) -> Iterator[Epoch]:
    """Train in place, yielding after every epoch. No weight decay on biases, norms and neurons."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.06}, {"params": others, "weight_decay": 0.0}])
    count = len(data.split("train"))
    batches = count // batch_size
    if batches == 0:
        raise ValueError(f"Training needs at least one batch of {batch_size} samples, got {count}.")
    random = np.random.default_rng(seed)
    step, total, warm_up = 0, epochs * batches, 2 * batches
    model.train()
    for epoch in range(1, epochs + 1):
        loss_sum = correct = 0.0
        for chosen in np.split(random.permutation(count)[: batches * batch_size], batches):
            cosine = 0.5 * (1 + math.cos(math.pi * step / total))
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * min(1.0, (step + 1) / warm_up) * cosine
            inputs, labels = batch(data, "train", chosen, model.head.weight.dtype)
            logits = model(inputs)
            loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            step += 1
            loss_sum += loss.item()
            correct += (logits.argmax(1) == labels).sum().item()
        yield Epoch(epoch, loss_sum / batches, correct / (batches * batch_size))


@torch.no_grad()
def accuracy_after_steps(model: Spikformer, data: DataSet, split: str, batch_size: int = 256) -> list[float]:
    """Share of right answers of the mean readout after 1, 2, … T steps; leaves the model in the mode it was in."""
    was_training = model.training
    model.eval()
    count = len(data.split(split))
    correct: Tensor | int = 0
    for chosen in np.split(np.arange(count), range(batch_size, count, batch_size)):
        inputs, labels = batch(data, split, chosen, model.head.weight.dtype)
        sums = model.forward_steps(inputs).cumsum(0)  # [T, B, K]; the mean has the same maximum
        correct = correct + (sums.argmax(-1) == labels).sum(1)
    model.train(was_training)
    return [share / count for share in torch.as_tensor(correct).tolist()]


def batch(data: DataSet, split: str, chosen: np.ndarray, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Inputs as the model wants them, and labels."""
    samples = data.split(split)
    inputs = data.prepare(np.stack([samples[index] for index in chosen]))
    return inputs.to(dtype), torch.as_tensor(samples.labels[chosen])
