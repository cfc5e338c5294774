"""DataSet and Samples: one small interface for every set, images and events alike; and the sample of a single file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from spikformer.card import ModelCard
from spikformer.data.events.formats import read_recording
from spikformer.data.images.picture import read_picture
from spikformer.errors import UnknownNameError, UserError
from spikformer.preprocessing import Preprocessing

if TYPE_CHECKING:  # reading files needs no torch
    from torch import Tensor

SPLITS = ("train", "validation", "test")
DIGITS = tuple("0123456789")


class Samples(Protocol):
    """One split: arrays by index, each with a label. Images are uint8 [C, H, W], event frames counts [T, 2, H, W].

    Reading a damaged sample raises a ValueError or an OSError that names its file.
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
    preprocessing: Preprocessing
    train: Samples | None
    validation: Samples | None
    test: Samples | None
    can_mirror: bool = False
    """A mirror image keeps its class; not so where left and right are classes, nor for letters and digits."""

    @property
    def channels(self) -> int:
        return self.preprocessing.channels

    @property
    def size(self) -> tuple[int, int]:
        return self.preprocessing.size

    @property
    def events(self) -> bool:
        return self.preprocessing.events

    def card(self, architecture: str) -> ModelCard:
        """The card of a network that is trained on this set."""
        return ModelCard(
            architecture=architecture,
            data_set=self.name,
            class_names=self.class_names,
            preprocessing=self.preprocessing,
        )

    def split(self, name: str) -> Samples:
        """The split "train", "validation" or "test"."""
        if name not in SPLITS:
            raise UnknownNameError("split", name, SPLITS)
        samples = getattr(self, name)
        if samples is None:
            raise UnknownNameError("split", name, (), f"{self.name} has {' and '.join(self.splits)}.")
        return samples

    def with_split(self, name: str, samples: Samples) -> DataSet:
        """A copy with other samples for a split."""
        splits = {each: samples if each == name else getattr(self, each) for each in SPLITS}
        return replace(self, train=splits["train"], validation=splits["validation"], test=splits["test"])

    @property
    def splits(self) -> list[str]:
        """Names of those that are there."""
        return [name for name in SPLITS if getattr(self, name) is not None]

    def scale(self, samples: Tensor) -> Tensor:
        """In float32: images as brightness between 0 and 1, frames as counts."""
        return samples.float() if self.events else samples.float() / 255

    def normalise(self, brightness: Tensor) -> Tensor:
        """Images between 0 and 1 with the set's mean and deviation taken out; frames as they are."""
        mean, std = self.preprocessing.mean, self.preprocessing.std
        if mean is None or std is None:
            return brightness
        centre, spread = (brightness.new_tensor(value).view(-1, 1, 1) for value in (mean, std))
        return (brightness - centre) / spread

    def prepare(self, samples: np.ndarray | Tensor) -> Tensor:
        """`Preprocessing.to_inputs` on any device: images [B, C, H, W], frames [T, B, 2, H, W]."""
        import torch

        x = self.normalise(self.scale(torch.as_tensor(samples)))
        return x.transpose(0, 1) if self.events else x


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


def preprocessed(samples: Samples, preprocessing: Preprocessing) -> Samples:
    """Decoded pictures as samples; those that are samples already stay what they are."""
    is_whole = preprocessing.crop_ratio == 1 and len(samples) > 0 and samples[0].shape == preprocessing.sample_shape
    return samples if is_whole else PreprocessedSamples(samples, preprocessing)


@dataclass(frozen=True, eq=False, repr=False)
class PreprocessedSamples:
    """Decoded pictures of another split, preprocessed."""

    samples: Samples
    preprocessing: Preprocessing

    @property
    def labels(self) -> np.ndarray:
        return self.samples.labels

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.preprocessing.to_sample(self.samples[index])

    def source(self, index: int) -> str:
        return self.samples.source(index)


def read_sample(path: str | os.PathLike[str], preprocessing: Preprocessing) -> np.ndarray:
    """A picture or recording file as a sample: the one that the data set itself would give for it."""
    if preprocessing.events:
        return preprocessing.to_sample(read_recording(path), os.fspath(path))
    return preprocessing.to_sample(read_picture(path, preprocessing.size_hint))


Content = TypeVar("Content")


class DamagedFilesError(UserError):
    """Files of a set that cannot be read, an error for each."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        more = len(errors) - 1
        others = f" ({more} more of its files cannot be read, `spikformer data check` lists them)" if more else ""
        super().__init__(f"{errors[0]}{others}")
        self.errors = tuple(errors)


def read_each(readers: Iterable[Callable[[], Content]]) -> list[Content]:
    """What each of them returns. A file that is not there at all is another matter, and raised at once."""
    contents: list[Content] = []
    errors: list[Exception] = []
    for read in readers:
        try:
            contents.append(read())
        except FileNotFoundError:
            raise
        except DamagedFilesError as error:
            errors += error.errors
        except (ValueError, OSError) as error:
            errors.append(error)
    if errors:
        raise DamagedFilesError(errors)
    return contents


class LabelledImages(NamedTuple):
    """Images uint8 [N, C, H, W] and their labels int64 [N]."""

    images: np.ndarray
    labels: np.ndarray
