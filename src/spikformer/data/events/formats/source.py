"""What event files share: bytes that are there, headers of text lines, sensors by name or by guess, 32-bit clocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from spikformer.errors import FileError, printable

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_LONGEST_HEADER = 1 << 20  # jAER writes its preferences there, tens of kilobytes; a short line takes 20 times its size


def open_source(path: Path) -> BinaryIO:
    """The file, opened; raises for what is not there, not a file, or empty."""
    if path.is_dir():
        raise FileError(path, "is a folder, expected an event file.", "foreign")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise FileError(path, "is empty: it has 0 bytes.", "empty")
    return path.open("rb")


def read_source(path: Path, magic: bytes, kind: str) -> bytes:
    """All bytes of a file that must start with `magic`; `kind` is what to call it, with its article."""
    with open_source(path) as source:
        data = source.read()
    if not data.startswith(magic):
        raise FileError(
            path,
            f"is not {kind}: expected {magic!r} at byte 0, got {data[: max(len(magic), 12)]!r}; "
            "the file is damaged or of another format.",
            "foreign",
        )
    return data


def text_header(data: bytes, mark: bytes, last: bytes, path: Path) -> tuple[list[str], int]:
    """The lines at the beginning that start with `mark`, without it, and the byte after them.

    The line `last` ends the header, but old files lack it. There the first event may begin with the very byte of the
    mark; it differs from a line by its control characters, which clocks and addresses have and text has not. A header
    may have 1 MiB.
    """
    lines: list[str] = []
    position = 0
    while data.startswith(mark, position):
        end = data.find(b"\n", position)
        line = data[position : end if end >= 0 else len(data)].removesuffix(b"\r")
        if _CONTROL.search(line):
            break
        if end < 0:
            raise FileError(path, f"is cut off in its header, at byte {len(data)}.", "truncated", at=len(data))
        if end >= _LONGEST_HEADER:
            raise FileError(path, f"has a header of more than {_LONGEST_HEADER:,} bytes; it is damaged.", "too_large")
        lines.append(line.removeprefix(mark).decode("latin-1").strip())
        position = end + 1
        if line.startswith(last):
            break
    return lines, position


def count_events(data: bytes, start: int, event_bytes: int, path: Path) -> int:
    """How many events of a fixed width lie from byte `start` to the end; raises for a part of one."""
    count, rest = divmod(len(data) - start, event_bytes)
    if rest:
        raise FileError(
            path,
            f"is cut off in mid-event, at byte {len(data)}: event {count} has {rest} of its {event_bytes} bytes.",
            "truncated",
            at=len(data),
        )
    return count


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


def check_sensor(height: int, width: int, path: Path) -> tuple[int, int]:
    """A size that a file states, if it can be one."""
    if not (1 <= height <= _LARGEST_SIDE and 1 <= width <= _LARGEST_SIDE and height * width <= _MOST_PIXELS):
        raise FileError(
            path,
            f"states a sensor of {printable(width)} columns and {printable(height)} rows, expected 1 to "
            f"{_LARGEST_SIDE} of each and {_MOST_PIXELS} pixels at most; its header is damaged.",
            at="sensor",
        )
    return height, width


_QUARTER = 1 << 30


def unwrap_stamps(stamps: np.ndarray) -> np.ndarray:
    """uint32 microseconds as int64 that run on where the clock wrapped.

    A wrap leaps from the clock's last quarter into its first. Any other step back (a clock that was reset, a damaged
    stamp) stays one, for which `check` raises.
    """
    time_us = stamps.astype(np.int64)
    wraps = np.flatnonzero((stamps[:-1] >= 3 * _QUARTER) & (stamps[1:] < _QUARTER))
    if len(wraps):
        leaps = np.zeros_like(time_us)
        leaps[wraps + 1] = 1 << 32
        time_us += leaps.cumsum()
    return time_us
