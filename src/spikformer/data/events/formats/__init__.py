"""Event files: one reader a format, and the one function that picks it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from spikformer.data.events.formats.address_events import read_nmnist, read_prophesee
from spikformer.data.events.formats.aedat import read_aedat2, read_aedat3
from spikformer.data.events.formats.aedat4 import read_aedat4
from spikformer.data.events.formats.numpy_files import read_npy, read_npz
from spikformer.data.events.formats.source import open_source
from spikformer.errors import FileError
from spikformer.sampling import Recording

__all__ = ["ENDINGS", "check", "read_recording"]

# "% " alone would also be an N-MNIST event at (37, 32): the longer text is what every .dat writer puts first.
_MAGIC: dict[bytes, Callable[[Path], Recording]] = {
    b"#!AER-DAT2.": read_aedat2,
    b"#!AER-DAT3.": read_aedat3,
    b"#!AER-DAT4.": read_aedat4,
    b"% Data file": read_prophesee,
    b"\x93NUMPY": read_npy,
    b"PK\x03\x04": read_npz,
}
# An .aedat file says its version itself; one that does not is sent to a reader that says what is missing.
_ENDING: dict[str, Callable[[Path], Recording]] = {
    ".aedat": read_aedat2,
    ".aedat2": read_aedat2,
    ".aedat4": read_aedat4,
    ".bin": read_nmnist,
    ".dat": read_prophesee,
    ".npy": read_npy,
    ".npz": read_npz,
}
ENDINGS = tuple(_ENDING)


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """The events of a file in any known format, recognised by its first bytes, or else by its ending.

    A damaged file raises a ValueError that names the file and the place in it.
    """
    path = Path(path)
    with open_source(path) as source:
        beginning = source.read(16)
    for magic, reader in _MAGIC.items():
        if beginning.startswith(magic):
            return check(reader(path), path)
    if path.suffix.lower() not in _ENDING:
        raise FileError(
            path,
            f"is in no event format known here: it starts with {beginning!r}, and its ending is none of "
            f"{', '.join(ENDINGS)}.",
            "foreign",
        )
    return check(_ENDING[path.suffix.lower()](path), path)


def check(recording: Recording, path: Path) -> Recording:
    """The recording, if it is one: not empty, inside its sensor, in the order of time."""
    count = len(recording.time_us)
    if count == 0:
        raise FileError(path, "holds no events.", "empty")
    height, width = recording.size
    outside = (recording.x < 0) | (recording.x >= width) | (recording.y < 0) | (recording.y >= height)
    if outside.any():
        first = int(outside.argmax())
        raise FileError(
            path,
            f": event {first} is at column {recording.x[first]}, row {recording.y[first]}, outside the sensor of "
            f"{width} columns and {height} rows; the file is damaged or of another camera.",
            at=first,
        )
    backwards = recording.time_us[1:] < recording.time_us[:-1]
    if backwards.any():
        first = int(backwards.argmax()) + 1
        raise FileError(
            path,
            f": time runs backwards at event {first}, from {recording.time_us[first - 1]} to "
            f"{recording.time_us[first]} µs; the file is damaged, or its clock was reset.",
            at=first,
        )
    return recording
