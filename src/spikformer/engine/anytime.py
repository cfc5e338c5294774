"""Anytime inference: step after step, samples whose answer is sure leave the batch, and the rest continue.

A sample is sure when the softmax of its mean readout so far gives one class at least the wanted confidence. Needs no
torch: engines and networks are both given as functions of one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from spikformer.card import ModelCard
from spikformer.validation import check_probability

State = TypeVar("State")
Confidence: TypeAlias = float | Literal["card"]
"""The probability at which an answer may end, or "card" for what the network's card stores."""


@dataclass(frozen=True)
class Stepper(Generic[State]):
    """A network that runs one step at a time."""

    start: Callable[[np.ndarray], State]
    """The state before the first frame [B, C, H, W]."""
    step: Callable[[np.ndarray, State], tuple[np.ndarray, State]]
    """One frame and the state before it: the readout [B, K], and the state after it."""
    take: Callable[[State, np.ndarray], State]
    """The state of some samples of a batch, by their indices."""


@dataclass(frozen=True)
class AnytimeAnswers:
    """What a network answered, and when."""

    logits: np.ndarray
    """The mean readout [B, K] of the steps that each sample took."""
    num_steps: np.ndarray
    """How many those are, [B]."""
    silent: np.ndarray
    """Whether no spike reached the head in any of them, [B]."""


def wanted_confidence(confidence: Confidence | None, card: ModelCard) -> float | None:
    """The number that was given, or that the card stores; None for all steps."""
    if confidence == "card":
        return card.known_confidence
    return None if confidence is None else check_probability("confidence", confidence)


def answer_anytime(
    stepper: Stepper[State], frames: np.ndarray, time_steps: int, confidence: float, resting: np.ndarray
) -> AnytimeAnswers:
    """Answers to static images [B, C, H, W] or event frames [T, B, C, H, W], after `time_steps` steps at most.

    With a confidence of 1, which no softmax of finite logits exceeds, nearly every sample takes all steps.
    """
    check_probability("confidence", confidence)
    static = frames.ndim == 4
    count = frames.shape[0 if static else 1]
    sums = np.zeros((count, len(resting)))
    num_steps = np.full(count, time_steps)
    silent = np.ones(count, bool)
    active, state = np.arange(count), None
    for number in range(time_steps):
        frame = np.ascontiguousarray((frames if static else frames[number])[active])
        state = stepper.start(frame) if state is None else state
        readout, state = stepper.step(frame, state)
        sums[active] += readout
        silent[active] &= (readout == resting).all(1)  # exactly: a sum of zeros is zero in any order
        sure = largest_share(sums[active] / (number + 1)) >= confidence
        num_steps[active[sure]] = number + 1
        if sure.all():
            break
        if sure.any():
            kept = np.flatnonzero(~sure)
            active, state = active[kept], stepper.take(state, kept)
    return AnytimeAnswers(sums / num_steps[:, None], num_steps, silent)


def mean_readouts(readouts: np.ndarray) -> np.ndarray:
    """After each step, the mean of the readouts [T, B, K] so far, as `answer_anytime` computes it."""
    return readouts.cumsum(0, dtype=np.float64) / np.arange(1, len(readouts) + 1)[:, None, None]


def largest_share(logits: np.ndarray) -> np.ndarray:
    """The largest softmax probability of logits [..., K]."""
    return 1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)
