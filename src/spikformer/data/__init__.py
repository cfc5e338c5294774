"""Data sets by name, as batches: `open_dataset` for the set, `Loader` for its batches, `Augmenter` for training."""

from spikformer.data.augmentation import Augmentation, Augmenter
from spikformer.data.catalogue import list_datasets, open_dataset, open_for_model, options_of
from spikformer.data.damage import DamagedFilesError
from spikformer.data.dataset import ArraySamples, DataSet, Samples
from spikformer.data.inputs import read_sample
from spikformer.data.loading import Batch, Loader

__all__ = [
    "ArraySamples",
    "Augmentation",
    "Augmenter",
    "Batch",
    "DamagedFilesError",
    "DataSet",
    "Loader",
    "Samples",
    "list_datasets",
    "open_dataset",
    "open_for_model",
    "options_of",
    "read_sample",
]
