"""What a trainer tells while it works."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """What a step did, as far as this process saw it; its speed is of all."""

    epoch: int
    batch: int
    num_batches: int
    loss: float
    learning_rate: float
    samples_per_second: float


class Epoch(NamedTuple):
    """What an epoch did, over all processes."""

    number: int
    metrics: dict[str, float]
    best: bool
    """No epoch before was as right on validation."""


class DivergedError(Exception):
    """The loss, or a weight, is no number any more."""
