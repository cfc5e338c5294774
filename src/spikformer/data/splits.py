"""Parts of a set: which samples are for training, for validation, for testing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Protocol, Self, TypeVar

import numpy as np

from spikformer.data.dataset import Samples


class Divisible(Protocol):
    """Labelled things of which some can be taken."""

    @property
    def labels(self) -> np.ndarray: ...

    def take(self, indices: np.ndarray) -> Self: ...


@dataclass(frozen=True, eq=False, repr=False)
class Subset:
    """Some samples of a split, in the order of their indices."""

    samples: Samples
    indices: np.ndarray

    @classmethod
    def whole(cls, samples: Samples) -> Subset:
        return cls(samples, np.arange(len(samples)))

    @cached_property
    def labels(self) -> np.ndarray:
        return self.samples.labels[self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.samples[int(self.indices[index])]

    def source(self, index: int) -> str:
        return self.samples.source(int(self.indices[index]))

    def take(self, indices: np.ndarray) -> Subset:
        return Subset(self.samples, self.indices[indices])


Part = TypeVar("Part", bound=Divisible)


VALIDATION_SHARE = 0.1


def complete_splits(splits: Mapping[str, Part], validation_share: float | None = None) -> dict[str, Part]:
    """Splits as they are used: what is called test is for testing, without it validation is, as in ImageNet.

    Where that leaves no validation split, a share of every class of train is held out for it, always the same one, 0.1
    unless another is given; a share of 0 trains on all.
    """
    validation_share = VALIDATION_SHARE if validation_share is None else validation_share
    if not 0 <= validation_share < 1:
        raise ValueError(f"validation_share must be at least 0 and below 1, got {validation_share!r}.")
    complete = dict(splits)
    if "test" not in complete and "validation" in complete:
        complete["test"] = complete.pop("validation")
    if "train" in complete and "validation" not in complete and validation_share:
        kept, held = hold_out(complete["train"].labels, validation_share)
        if len(held):
            complete["train"], complete["validation"] = complete["train"].take(kept), complete["train"].take(held)
    return complete


def spread_samples(samples: Samples, count: int) -> Samples:
    """At most so many samples from all over a split, always the same, in order."""
    if count >= len(samples):
        return samples
    chosen = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    return Subset.whole(samples).take(chosen)


def hold_out(labels: np.ndarray, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Indices of what is kept and of what is held out, the same share of every class, drawn by the seed, in order."""
    random = np.random.default_rng(seed)
    held = [
        random.permutation(members)[: round(share * len(members))]
        for members in (np.flatnonzero(labels == label) for label in np.unique(labels))
    ]
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(labels)), out), out


def first_of_each_class(labels: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the first share of every class, rounded up, and of the rest."""
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    counts = [ceil(share * len(indices)) for indices in members]
    first = np.concatenate([indices[:count] for indices, count in zip(members, counts, strict=True)])
    rest = np.concatenate([indices[count:] for indices, count in zip(members, counts, strict=True)])
    return first, rest
