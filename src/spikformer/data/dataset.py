"""DataSet: one small interface for every set, images and events alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class Samples(Protocol):
    """One split: arrays by index, each with a label. Images are uint8 [C, H, W], event frames float32 [T, 2, H, W]."""

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
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    """Of brightness between 0 and 1, by channel; None where inputs are taken as they are, as counts of events."""

    def split(self, name: str) -> Samples:
        """The split "train", "validation" or "test"."""
        if name not in ("train", "validation", "test"):
            raise ValueError(f"A split is one of train, validation, test, got {name!r}.")
        samples = getattr(self, name)
        if samples is None:
            raise ValueError(f"{self.name} has no {name} split here.")
        return samples

    def prepare(self, samples: np.ndarray) -> Tensor:
        """Images [B, C, H, W] as a model wants them, scaled and normalised; frames [B, T, C, H, W] with time first."""
        if self.events:
            return torch.as_tensor(samples).transpose(0, 1)
        x = torch.as_tensor(samples, dtype=torch.float32) / 255
        if self.mean is not None and self.std is not None:
            x = (x - torch.tensor(self.mean).view(-1, 1, 1)) / torch.tensor(self.std).view(-1, 1, 1)
        return x


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

    def take(self, indices: np.ndarray) -> ArraySamples:
        return ArraySamples(self.arrays[indices], self.labels[indices], self.name)


def hold_out(labels: np.ndarray, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Indices of what is kept and of what is held out, the same share of every class, drawn by the seed, in order."""
    random = np.random.default_rng(seed)
    held = [
        random.permutation(members)[: round(share * len(members))]
        for members in (np.flatnonzero(labels == label) for label in np.unique(labels))
    ]
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(labels)), out), out
