"""Where a run is, what it reports on the way, and how it ends when numbers diverge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


@dataclass
class Progress:
    """Where a run is, and what it has seen."""

    epoch: int = 0
    """Epochs that are finished, so also the number of the present one, from 0."""
    batch: int = 0
    """Iterations of the present epoch that are done."""
    iteration: int = 0
    """Iterations in all."""
    loss_sum: float = 0.0
    num_correct: int = 0
    num_samples: int = 0
    """Of the present epoch, over all devices."""
    unreadable: int = 0
    seconds: float = 0.0
    epoch_seconds: float = 0.0
    """Spent in iterations, over all interruptions."""
    best_epoch: int | None = None
    best_accuracy: float | None = None
    """On validation."""
    history: list[dict[str, float]] = field(default_factory=list)
    """A row of metrics for every finished epoch."""

    def without_gain_for(self, epochs: int | None) -> bool:
        """Whether validation was best so many epochs ago, or more."""
        return epochs is not None and self.best_epoch is not None and self.epoch - self.best_epoch >= epochs

    def set_sums(self, loss_sum: float, num_correct: float, num_samples: float, unreadable: float) -> None:
        self.loss_sum, self.num_correct = float(loss_sum), int(num_correct)
        self.num_samples, self.unreadable = int(num_samples), int(unreadable)

    def finish_epoch(self, metrics: dict[str, float]) -> bool:
        """Record an epoch and reset its sums; whether it is the best so far."""
        self.history.append(metrics)
        self.epoch, self.batch = self.epoch + 1, 0
        self.loss_sum, self.num_correct, self.num_samples, self.epoch_seconds = 0.0, 0, 0, 0.0
        is_best = best_epoch(self.history) == self.epoch
        if is_best:
            self.best_epoch, self.best_accuracy = self.epoch, metrics["validation_accuracy"]
        return is_best


def best_epoch(history: Sequence[Mapping[str, float]]) -> int | None:
    """The epoch with the best validation accuracy, the first of equals; None without validation."""
    shares = [row.get("validation_accuracy", -1.0) for row in history]
    best = max(shares, default=-1.0)
    return shares.index(best) + 1 if best >= 0 else None


class Iteration(NamedTuple):
    """One iteration of the optimiser, as this process saw it; speed is that of all processes."""

    number: int
    """Iterations since the start of training."""
    epoch: int
    """The epoch it belongs to, starting at 1."""
    batch: int
    num_batches: int
    """Iterations of the epoch that are done, and all of them."""
    loss: float
    learning_rate: float
    samples_per_second: float
    mean_loss: float
    mean_accuracy: float
    """Of the epoch so far."""


class Epoch(NamedTuple):
    """A finished epoch, over all processes."""

    number: int
    metrics: dict[str, float]
    best: bool
    """No epoch before was as accurate on validation."""


class DivergedError(Exception):
    """The loss or a weight is NaN or infinite."""

    def __init__(self, message: str, iteration: int, epoch: int, learning_rate: float) -> None:
        super().__init__(message, iteration, epoch, learning_rate)
        self.message, self.iteration, self.epoch, self.learning_rate = message, iteration, epoch, learning_rate

    @classmethod
    def at(cls, progress: Progress, learning_rate: float, state: Path | None) -> DivergedError:
        """With what to do; `state` is where the last good one may be."""
        iteration, epoch = progress.iteration, progress.epoch + 1
        last = f"the last good state is {state}" if state is not None and state.exists() else "no state was saved yet"
        message = (
            f"The loss or a weight is NaN or infinite at iteration {iteration} (epoch {epoch}), at a learning rate of "
            f"{learning_rate:.3g}; {last}. Try a lower learning rate, clip_gradient or float32."
        )
        return cls(message, iteration, epoch, learning_rate)

    def __str__(self) -> str:
        return self.message
