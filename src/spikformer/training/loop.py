"""A plain training loop: AdamW, warm-up and cosine, label smoothing. Enough for the embedded digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from spikformer.data import DataSet, Loader
from spikformer.models import Spikformer


class Epoch(NamedTuple):
    """What one epoch did."""

    number: int
    loss: float
    accuracy: float
    unreadable: int = 0
    """Samples so far that could not be read, and were replaced by others."""


def train(
    model: Spikformer,
    data: DataSet,
    *,
    epochs: int,
    batch_size: int = 64,
    learning_rate: float = 5e-3,
    seed: int = 0,
    workers: int = 0,
    strict: bool = False,
) -> Iterator[Epoch]:
    """Train in place, yielding after every epoch. No weight decay on biases, norms and neurons.

    A sample that cannot be read is replaced, told once and counted; `strict` stops there.
    """
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.06}, {"params": others, "weight_decay": 0.0}])
    loader = Loader(data, "train", batch_size, training=True, seed=seed, workers=workers, strict=strict)
    batches = len(loader)
    dtype = model.head.weight.dtype
    step, total, warm_up = 0, epochs * batches, 2 * batches
    model.train()
    for epoch in range(1, epochs + 1):
        loss_sum = correct = 0.0
        for batch in loader.epoch(epoch):
            cosine = 0.5 * (1 + math.cos(math.pi * step / total))
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * min(1.0, (step + 1) / warm_up) * cosine
            logits = model(data.prepare(batch.samples).to(dtype))
            loss = F.cross_entropy(logits, batch.labels, label_smoothing=0.1)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            step += 1
            loss_sum += loss.item()
            correct += (logits.argmax(1) == batch.labels).sum().item()
        yield Epoch(epoch, loss_sum / batches, correct / (batches * batch_size), loader.unreadable.total())


class Accuracy(NamedTuple):
    """What an evaluation found."""

    after_steps: list[float]
    """Share of right answers of the mean readout after 1, 2, … T steps."""
    num_samples: int
    unreadable: int
    """Samples that could not be read, and are not among these."""


@torch.no_grad()
def measure_accuracy(
    model: Spikformer, data: DataSet, split: str, *, batch_size: int = 256, workers: int = 0, strict: bool = False
) -> Accuracy:
    """Right answers on a split; leaves the model in the mode it was in."""
    loader = Loader(data, split, batch_size, training=False, workers=workers, strict=strict)
    was_training, dtype = model.training, model.head.weight.dtype
    model.eval()
    correct, count = torch.zeros(1, dtype=torch.int64), 0
    for batch in loader.epoch(0):
        sums = model.forward_steps(data.prepare(batch.samples).to(dtype)).cumsum(0)  # [T, B, K]; as large as the mean
        correct = correct + (sums.argmax(-1) == batch.labels).sum(1)
        count += len(batch.labels)
    model.train(was_training)
    if not count:
        raise ValueError(f"No sample of {data.name}, {split}, can be read; `spikformer data check` lists why.")
    return Accuracy([right / count for right in correct.tolist()], count, loader.unreadable.total())
