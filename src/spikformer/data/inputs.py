"""One file as a model wants it: a picture or a recording in the form of the data set that the model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spikformer.config import ModelConfig
from spikformer.data.events.formats import read_recording
from spikformer.data.events.frames import FrameForm
from spikformer.data.events.recording import swap_axes
from spikformer.data.images import evaluation_crop, evaluation_size, read_picture

_CROPPED = ("imagenet", "image_folder")  # sets whose evaluation sees the middle of a picture
_SWAPPED = ("cifar10dvs",)
_LUMA = np.array([0.299, 0.587, 0.114])


def read_sample(path: str | Path, config: ModelConfig, about: Mapping[str, Any]) -> np.ndarray:
    """A sample as `DataSet.prepare` takes it; `about` is what `DataSet.about` said of the set."""
    size = config.image_size
    if size is None:
        raise ValueError("This model's config leaves image_size open; a file cannot be brought into its form.")
    if about["events"]:
        recording = read_recording(path)
        upright = swap_axes(recording) if about["name"] in _SWAPPED else recording
        return FrameForm(config.time_steps, size).apply(upright)
    ratio = 0.875 if about["name"] in _CROPPED else 1.0
    picture = evaluation_crop(read_picture(path, evaluation_size(size, ratio)), size, ratio)
    if config.in_channels == 1:
        return np.rint(np.tensordot(_LUMA, picture, 1)).astype(np.uint8)[None]
    return picture
