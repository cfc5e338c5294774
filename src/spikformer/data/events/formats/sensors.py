"""Sensor sizes (height, width): by a chip's name, or guessed where a file says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spikformer.vocabulary import printable

# By the beginning of the name: DAVIS240A, B and C share a size, as do Davis346red, Davis346blue, DAVIS346B, …
CHIPS = {"DVS128": (128, 128), "DAVIS240": (180, 240), "DAVIS346": (260, 346)}

# More than any event camera has so far (1280 × 720), few enough that a damaged header asks for no huge frames.
_LARGEST_SIDE = 4096
_MOST_PIXELS = 1 << 21


def size_of_chip(name: str) -> tuple[int, int] | None:
    """The size of a chip by its name, in any case; None if it is not known."""
    return next((size for chip, size in CHIPS.items() if name.upper().startswith(chip)), None)


def smallest_size(x: np.ndarray, y: np.ndarray, sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The first of the sizes, in growing order, that holds all events; the last one if none does.

    The bounding box itself would differ from recording to recording of one camera.
    """
    rows, columns = (int(y.max()) + 1, int(x.max()) + 1) if len(x) else (0, 0)
    return next((size for size in sizes if rows <= size[0] and columns <= size[1]), sizes[-1])


def check_size(height: int, width: int, path: Path) -> tuple[int, int]:
    """A size that a file states, if it can be one."""
    if not (1 <= height <= _LARGEST_SIDE and 1 <= width <= _LARGEST_SIDE and height * width <= _MOST_PIXELS):
        raise ValueError(
            f"{path} states a sensor of {printable(width)} columns and {printable(height)} rows, expected 1 to "
            f"{_LARGEST_SIDE} of each and {_MOST_PIXELS} pixels at most; its header is damaged."
        )
    return height, width
