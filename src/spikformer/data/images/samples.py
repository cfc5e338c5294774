"""Images as samples of one size, read when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spikformer.data.class_folders import LabelledFiles
from spikformer.data.dataset import Samples
from spikformer.data.images.crop import evaluation_crop, evaluation_size
from spikformer.data.images.picture import read_picture


@dataclass(frozen=True, eq=False, repr=False)
class PictureSamples:
    """Files, each as the centre of its picture: the whole short side at a ratio of 1, less below."""

    files: LabelledFiles
    size: tuple[int, int]
    ratio: float

    @property
    def labels(self) -> np.ndarray:
        return self.files.labels

    def __len__(self) -> int:
        return len(self.files.paths)

    def __getitem__(self, index: int) -> np.ndarray:
        picture = read_picture(self.files.paths[index], size_hint=evaluation_size(self.size, self.ratio))
        return evaluation_crop(picture, self.size, self.ratio)

    def source(self, index: int) -> str:
        return self.files.paths[index]


def resized(samples: Samples, size: tuple[int, int]) -> Samples:
    """The same samples in that size."""
    return samples if not len(samples) or samples[0].shape[1:] == size else ResizedSamples(samples, size)


@dataclass(frozen=True, eq=False, repr=False)
class ResizedSamples:
    """Images of another split, resized to just cover a size, and of that the centre."""

    samples: Samples
    size: tuple[int, int]

    @property
    def labels(self) -> np.ndarray:
        return self.samples.labels

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> np.ndarray:
        return evaluation_crop(self.samples[index], self.size, ratio=1.0)

    def source(self, index: int) -> str:
        return self.samples.source(index)
