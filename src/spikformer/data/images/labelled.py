"""Images in memory, with their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class LabelledImages(NamedTuple):
    """Images uint8 [N, C, H, W] and their labels int64 [N]."""

    images: np.ndarray
    labels: np.ndarray
