"""Samples of pictures, read and preprocessed when they are asked for; and the sample of a single file."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from spikformer.data.class_folders import LabelledFiles
from spikformer.data.dataset import Samples
from spikformer.data.events.formats import read_recording
from spikformer.data.images.picture import read_picture
from spikformer.preprocessing import Preprocessing


def read_sample(path: str | os.PathLike[str], preprocessing: Preprocessing) -> np.ndarray:
    """A picture or recording file as a sample: the one that the data set itself would give for it."""
    if preprocessing.events:
        return preprocessing.to_sample(read_recording(path), os.fspath(path))
    return preprocessing.to_sample(read_picture(path, preprocessing.size_hint))


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
        return read_sample(self.files.paths[index], self.preprocessing)

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
