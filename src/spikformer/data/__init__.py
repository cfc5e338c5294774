"""Data sets: so far the embedded ones; readers of image and event files stand ready in `images` and `events`."""

from spikformer.data.catalogue import open_dataset
from spikformer.data.dataset import ArraySamples, DataSet, Samples

__all__ = ["ArraySamples", "DataSet", "Samples", "open_dataset"]
