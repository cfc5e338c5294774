"""One file as a network wants it: a picture or a recording, through the preprocessing of its card."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spikformer.data.events.formats import read_recording
from spikformer.data.images.picture import read_picture
from spikformer.preprocessing import Preprocessing


def read_sample(path: str | Path, preprocessing: Preprocessing) -> np.ndarray:
    """The very sample that the data set would give for this file."""
    if preprocessing.events:
        return preprocessing.to_sample(read_recording(path), str(path))
    return preprocessing.to_sample(read_picture(path, preprocessing.size_hint), str(path))
