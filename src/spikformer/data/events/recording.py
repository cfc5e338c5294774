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
    size_is_guessed: bool = False  # the file does not say it; a usual one that holds all events was taken


def swap_axes(recording: Recording) -> Recording:
    """Rows as columns: the picture mirrored at its diagonal."""
    height, width = recording.size
    return recording._replace(x=recording.y, y=recording.x, size=(width, height))


def with_sensor(recording: Recording, sensor: tuple[int, int], path: str) -> Recording:
    """A recording whose size was guessed, with the size of its set: recordings of one camera must not differ."""
    if not recording.size_is_guessed or recording.size == sensor:
        return recording
    rows, columns = int(recording.y.max()) + 1, int(recording.x.max()) + 1
    if rows > sensor[0] or columns > sensor[1]:
        raise ValueError(
            f"{path} does not say its sensor, and has events up to row {rows - 1} and column {columns - 1}, outside "
            f"the {sensor[0]}×{sensor[1]} of its set; give the right `sensor`."
        )
    return recording._replace(size=sensor, size_is_guessed=False)


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
    backwards = recording.time_us[1:] < recording.time_us[:-1]
    if backwards.any():
        first = int(backwards.argmax()) + 1
        raise ValueError(
            f"{path}: time runs backwards at event {first}, from {recording.time_us[first - 1]} to "
            f"{recording.time_us[first]} µs; the file is damaged, or its clock was reset."
        )
    return recording
