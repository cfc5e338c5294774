"""From a picture or a recording to a class name, through the preprocessing of the network's card.

    for answer in engine.predict(["cat.jpg", "dog.png"]):
        print(answer.source, answer.class_name, answer.probability)

Needs no torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from spikformer.card import ModelCard
from spikformer.engine.anytime import AnytimeAnswers
from spikformer.errors import FieldError
from spikformer.sampling import Recording

Input: TypeAlias = str | os.PathLike[str] | np.ndarray | Recording
_AT_ONCE = 32  # samples, so that a long list of files takes no more memory than a short one


@dataclass(frozen=True)
class Prediction:
    """What a network takes an input for."""

    source: str
    """The file's path, or the input's place in the list."""
    class_names: tuple[str, ...]
    probabilities: tuple[float, ...]
    """By class: the softmax of the mean readout."""
    silent: bool
    """No spike reached the head, so that the answer says nothing about the input."""
    num_steps: int
    """Time steps that the answer took."""

    @property
    def class_name(self) -> str | None:
        """The likeliest class; None from a silent network."""
        return None if self.silent else self.top(1)[0][0]

    @property
    def probability(self) -> float:
        """Of the likeliest class."""
        return max(self.probabilities)

    def top(self, count: int) -> list[tuple[str, float]]:
        """The likeliest classes with their probabilities, the likeliest first."""
        pairs = zip(self.class_names, self.probabilities, strict=True)
        return sorted(pairs, key=lambda pair: -pair[1])[:count]


def predict(
    answer: Callable[[np.ndarray], np.ndarray | AnytimeAnswers],
    resting: np.ndarray,
    card: ModelCard,
    inputs: Input | Iterable[Input],
) -> list[Prediction]:
    """Answers to picture or recording files, decoded pictures uint8 [C, H, W] and recordings, in their order.

    `answer` turns float32 inputs into readouts [T, B, K], or into answers that may have ended early; `resting` [K] is
    the readout when nothing fires. A file that cannot be read raises the ValueError or OSError of its reader.
    """
    seen = card.known_preprocessing
    if not card.class_names:
        raise FieldError("class_names", "The card names no classes; save the network with a card that does.")
    given = [inputs] if isinstance(inputs, str | os.PathLike | np.ndarray | Recording) else list(inputs)
    answers = []
    for start in range(0, len(given), _AT_ONCE):
        some = given[start : start + _AT_ONCE]
        found = answer(seen.to_inputs(np.stack([_sample(source, card) for source in some])))
        found = found if isinstance(found, AnytimeAnswers) else _after_all_steps(found, resting)
        for number, source in enumerate(some):
            name = os.fspath(source) if isinstance(source, str | os.PathLike) else f"input {start + number}"
            logits, silent = found.logits[number], bool(found.silent[number])
            if not np.isfinite(logits).all():
                raise FieldError("logits", f"The network answers {name} with NaN or infinity; its weights are damaged.")
            num_steps = int(found.num_steps[number])
            answers.append(Prediction(name, card.class_names, _softmax(logits), silent, num_steps))
    return answers


def _after_all_steps(readouts: np.ndarray, resting: np.ndarray) -> AnytimeAnswers:
    silent = (readouts == resting).all((0, 2))  # exactly: a sum of zeros is zero in any order
    steps = np.full(readouts.shape[1], len(readouts))
    return AnytimeAnswers(readouts.astype(np.float64).mean(0), steps, silent)


def _sample(source: Input, card: ModelCard) -> np.ndarray:
    if isinstance(source, np.ndarray | Recording):
        return card.known_preprocessing.to_sample(source)
    from spikformer.data.dataset import read_sample

    return read_sample(source, card.known_preprocessing)


def _softmax(logits: np.ndarray) -> tuple[float, ...]:
    shares = np.exp(logits - logits.max())
    return tuple((shares / shares.sum()).tolist())
