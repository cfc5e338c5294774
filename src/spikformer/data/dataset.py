"""DataSet: one small interface for every set, images and events alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

SPLITS = ("train", "validation", "test")
DIGITS = tuple("0123456789")


class Samples(Protocol):
    """One split: arrays by index, each with a label. Images are uint8 [C, H, W], event frames counts [T, 2, H, W].

    Reading a damaged sample raises a ValueError or an OSError of one sentence that names its file.
    """

    @property
    def labels(self) -> np.ndarray: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> np.ndarray: ...

    def source(self, index: int) -> str:
        """Where a sample comes from, for people: a file, or a place in one."""
        ...


@dataclass(frozen=True)
class DataSet:
    """Splits, classes and form of a set. A split that its files do not have is None."""

    name: str
    class_names: tuple[str, ...]
    channels: int
    size: tuple[int, int]
    events: bool
    train: Samples | None
    validation: Samples | None
    test: Samples | None
    can_mirror: bool = False
    """A mirror image keeps its class; not so where left and right are classes, nor for letters and digits."""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    """Of brightness between 0 and 1, by channel; None where inputs are taken as they are, as counts of events."""

    def about(self) -> dict[str, Any]:
        """What weights should remember of the data they were trained on, as plain JSON."""
        return {
            "name": self.name,
            "class_names": list(self.class_names),
            "events": self.events,
            "mean": self.mean and list(self.mean),
            "std": self.std and list(self.std),
        }

    def split(self, name: str) -> Samples:
        """The split "train", "validation" or "test"."""
        if name not in SPLITS:
            raise ValueError(f"A split is one of {', '.join(SPLITS)}, got {name!r}.")
        samples = getattr(self, name)
        if samples is None:
            raise ValueError(f"{self.name} has no {name} split here; it has {' and '.join(self.splits)}.")
        return samples

    @property
    def splits(self) -> list[str]:
        """Names of those that are there."""
        return [name for name in SPLITS if getattr(self, name) is not None]

    def scale(self, samples: Tensor) -> Tensor:
        """In float32: images as brightness between 0 and 1, frames as counts."""
        return scale(samples, events=self.events)

    def normalise(self, brightness: Tensor) -> Tensor:
        """Images between 0 and 1 with the set's mean and deviation taken out; frames as they are."""
        return normalise(brightness, self.mean, self.std)

    def prepare(self, samples: np.ndarray | Tensor) -> Tensor:
        """Images [B, C, H, W] as a model wants them, scaled and normalised; frames [B, T, C, H, W] with time first."""
        return prepare(samples, events=self.events, mean=self.mean, std=self.std)


def scale(samples: Tensor, *, events: bool) -> Tensor:
    return samples.to(torch.float32) if events else samples.to(torch.float32) / 255


def normalise(brightness: Tensor, mean: Sequence[float] | None, std: Sequence[float] | None) -> Tensor:
    if mean is None or std is None:
        return brightness
    centre, spread = (brightness.new_tensor(value).view(-1, 1, 1) for value in (mean, std))
    return (brightness - centre) / spread


def prepare(
    samples: np.ndarray | Tensor, *, events: bool, mean: Sequence[float] | None, std: Sequence[float] | None
) -> Tensor:
    """See `DataSet.prepare`; for those who have no set, but know what weights remember of it."""
    x = normalise(scale(torch.as_tensor(samples), events=events), mean, std)
    return x.transpose(0, 1) if events else x


@dataclass(frozen=True, eq=False, repr=False)
class ArraySamples:
    """A split that lies in memory."""

    arrays: np.ndarray
    labels: np.ndarray
    name: str

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.arrays[index]

    def source(self, index: int) -> str:
        return f"{self.name}, sample {index}"
