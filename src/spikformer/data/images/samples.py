"""Images as samples of one size, read when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spikformer.data.class_folders import LabelledFiles
from spikformer.data.dataset import Samples
from spikformer.data.images.picture import read_picture
from spikformer.preprocessing import Preprocessing


@dataclass(frozen=True, eq=False, repr=False)
class PictureSamples:
    """Picture files, decoded and preprocessed one by one."""

    files: LabelledFiles
    preprocessing: Preprocessing

    @property
    def labels(self) -> np.ndarray:
        return self.files.labels

    def __len__(self) -> int:
        return len(self.files.paths)

    def __getitem__(self, index: int) -> np.ndarray:
        picture = read_picture(self.files.paths[index], size_hint=self.preprocessing.size_hint)
        return self.preprocessing.to_sample(picture)

    def source(self, index: int) -> str:
        return self.files.paths[index]


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
