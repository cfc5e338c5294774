"""Data sets by name, as batches: `open_dataset` for the set, `Loader` for its batches, `Augmenter` for training.

Names load on first use: only `Loader`, `Batch`, `SplitDataset` and `Augmenter` need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spikformer.data.augmentation import Augmentation, Augmenter
    from spikformer.data.catalogue import list_datasets, open_dataset, open_for_model, options_of, register_dataset
    from spikformer.data.dataset import ArraySamples, DamagedFilesError, DataSet, Samples, read_sample
    from spikformer.data.loader import Batch, Loader, SplitDataset
    from spikformer.data.options import DataOptions

_HOME = {
    "ArraySamples": "dataset",
    "Augmentation": "augmentation",
    "Augmenter": "augmentation",
    "Batch": "loader",
    "DamagedFilesError": "dataset",
    "DataOptions": "options",
    "DataSet": "dataset",
    "Loader": "loader",
    "Samples": "dataset",
    "SplitDataset": "loader",
    "list_datasets": "catalogue",
    "open_dataset": "catalogue",
    "open_for_model": "catalogue",
    "options_of": "catalogue",
    "read_sample": "dataset",
    "register_dataset": "catalogue",
}

__all__ = [
    "ArraySamples",
    "Augmentation",
    "Augmenter",
    "Batch",
    "DamagedFilesError",
    "DataOptions",
    "DataSet",
    "Loader",
    "Samples",
    "SplitDataset",
    "list_datasets",
    "open_dataset",
    "open_for_model",
    "options_of",
    "read_sample",
    "register_dataset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spikformer.data' has no attribute {name!r}")
    return getattr(import_module(f"spikformer.data.{_HOME[name]}"), name)
