"""Recording: the events of one sample, whatever file they came from."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np


class Recording(NamedTuple):
    """Events in the order of time. Arrays are of one length; `size` is the sensor's height and width."""

    time_us: np.ndarray  # int64, microseconds, never running backwards
    x: np.ndarray  # int16, column, 0 at the left
    y: np.ndarray  # int16, row, 0 at the top
    on: np.ndarray  # bool, True where it became brighter
    size: tuple[int, int]


def swap_axes(recording: Recording) -> Recording:
    """Rows as columns: the picture mirrored at its diagonal."""
    time_us, x, y, on, (height, width) = recording
    return Recording(time_us, y, x, on, (width, height))


def check(recording: Recording, path: Path) -> Recording:
    """The recording, if it is one: not empty, inside its sensor, in the order of time."""
    count = len(recording.time_us)
    if count == 0:
        raise ValueError(f"{path} holds no events.")
    height, width = recording.size
    outside = (recording.x < 0) | (recording.x >= width) | (recording.y < 0) | (recording.y >= height)
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(
            f"{path}: event {first} is at column {recording.x[first]}, row {recording.y[first]}, outside the sensor of "
            f"{width} columns and {height} rows; the file is damaged or of another camera."
        )
    backwards = np.diff(recording.time_us) < 0
    if backwards.any():
        first = int(backwards.argmax()) + 1
        raise ValueError(
            f"{path}: time runs backwards at event {first}, from {recording.time_us[first - 1]} to "
            f"{recording.time_us[first]} µs; the file is damaged, or its clock was reset."
        )
    return recording
