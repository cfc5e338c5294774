"""DataSet: one small interface for every set, images and events alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

SPLITS = ("train", "validation", "test")


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

    def split(self, name: str) -> Samples:
        """The split "train", "validation" or "test"."""
        if name not in SPLITS:
            raise ValueError(f"A split is one of {', '.join(SPLITS)}, got {name!r}.")
        samples = getattr(self, name)
        if samples is None:
            there = [split for split in SPLITS if getattr(self, split) is not None]
            raise ValueError(f"{self.name} has no {name} split here; it has {' and '.join(there)}.")
        return samples

    def scale(self, samples: Tensor) -> Tensor:
        """In float32: images as brightness between 0 and 1, frames as counts."""
        return samples.to(torch.float32) if self.events else samples.to(torch.float32) / 255

    def normalise(self, brightness: Tensor) -> Tensor:
        """Images between 0 and 1 with the set's mean and deviation taken out; frames as they are."""
        if self.mean is None or self.std is None:
            return brightness
        mean, std = (brightness.new_tensor(value).view(-1, 1, 1) for value in (self.mean, self.std))
        return (brightness - mean) / std

    def prepare(self, samples: np.ndarray | Tensor) -> Tensor:
        """Images [B, C, H, W] as a model wants them, scaled and normalised; frames [B, T, C, H, W] with time first."""
        x = self.normalise(self.scale(torch.as_tensor(samples)))
        return x.transpose(0, 1) if self.events else x


@dataclass(frozen=True)
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
