"""Anytime inference over a whole split: which samples leave after which step, and which confidence to choose.

All of it follows from two arrays [T, N]: how sure a network is of its answer after each step, and whether it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spikformer.errors import FieldError

CONFIDENCES = tuple(round(0.3 + 0.001 * number, 3) for number in range(700))
"""What a choice is made from: 0.300 to 0.999."""


@dataclass(frozen=True)
class ExitPoint:
    """A confidence on a split: samples leave at the first step at which they are that sure."""

    confidence: float | None
    """None: every sample takes all steps."""
    accuracy: float
    mean_steps: float
    leaving: tuple[float, ...]
    """Share of the samples that leave after step 1, 2, … T."""


@dataclass(frozen=True)
class MeasuredExit:
    """The same with what it costs, for one sample on average."""

    point: ExitPoint
    single_ms: float
    """Milliseconds of the engine for a sample on its own."""
    batch_ms: float
    """The same for one of a batch of `AnytimeReport.batch_size`."""
    paper_energy_mj: float
    strict_energy_mj: float
    """Energy of the steps taken, by two conventions; the first convolution counts at every step."""


@dataclass(frozen=True)
class AnytimeReport:
    """A confidence chosen on the validation split, and what it and others give on the test split."""

    confidence: float | None
    """The chosen one; None where no confidence keeps the accuracy, so that all steps are needed."""
    tolerance: float
    """By how much the accuracy may be below that of all steps, as a share."""
    validation: ExitPoint
    """At the chosen confidence."""
    validation_all: ExitPoint
    """With all steps."""
    curve: tuple[ExitPoint, ...]
    """On the test split, by rising confidence."""
    exits: tuple[MeasuredExit, ...]
    """On the test split, the chosen confidence among others, by rising confidence."""
    all_steps: MeasuredExit
    """On the test split; all steps computed side by side, in one call."""
    num_samples: int
    """Of the test split."""
    batch_size: int
    num_threads: int
    instructions: str
    """Of the engine."""
    machine: str
    silent: bool
    """No spike reached the head, so that the answers say nothing about the samples."""

    @property
    def chosen(self) -> MeasuredExit:
        """The chosen confidence on the test split, or all steps."""
        same = (each for each in self.exits if each.point.confidence == self.confidence)
        return next(same, self.all_steps)


@dataclass(frozen=True, eq=False)
class StepAnswers:
    """What a network answered to N samples, after each of T steps."""

    shares: np.ndarray
    """Probability of the likeliest class, by the softmax of the mean readout so far: [T, N]."""
    correct: np.ndarray
    """Whether that class is the sample's: bool [T, N]."""

    def num_steps(self, confidence: float | None) -> np.ndarray:
        """How many steps each sample takes, [N]."""
        time_steps, count = self.shares.shape
        if confidence is None:
            return np.full(count, time_steps)
        sure = self.shares >= confidence
        return np.where(sure.any(0), sure.argmax(0) + 1, time_steps)

    def at(self, confidence: float | None) -> ExitPoint:
        steps = self.num_steps(confidence)
        right = self.correct[steps - 1, np.arange(len(steps))]
        leaving = np.bincount(steps, minlength=len(self.shares) + 1)[1:] / len(steps)
        return ExitPoint(confidence, float(right.mean()), float(steps.mean()), tuple(leaving.tolist()))


def choose_confidence(
    answers: StepAnswers, tolerance: float, confidences: Sequence[float] = CONFIDENCES
) -> float | None:
    """The lowest confidence at which, and above which, accuracy is at most `tolerance` below that of all steps.

    Accuracy need not rise with the confidence: one that keeps it by chance, below others that do not, is not chosen.
    Of confidences at which every sample leaves at the same step, the highest is taken: it costs nothing here, and is
    the safer one on other samples. None where not even the highest keeps the accuracy.
    """
    if not 0 <= tolerance < 1:
        raise FieldError("tolerance", f"tolerance must be a share of the samples from 0 to below 1, got {tolerance!r}.")
    least = answers.at(None).accuracy - tolerance - 1e-9  # a share of samples is rounded
    chosen: ExitPoint | None = None
    for confidence in sorted(confidences, reverse=True):
        point = answers.at(confidence)
        if point.accuracy < least:
            break
        if chosen is None or point.mean_steps < chosen.mean_steps:
            chosen = point
    return None if chosen is None else chosen.confidence
