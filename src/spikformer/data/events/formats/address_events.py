"""Files of fixed-width events: N-MNIST's .bin, which N-Caltech101 shares, and Prophesee's .dat, version 2.

Not tonic's `read_mnist_file`: for each overflow of the clock it walks the rest of the file, and a file cut in mid-event
is read as complete or fails with an error about shapes. Not expelliarmus, tonic's choice for .dat (N-CARS, Metavision):
on a file cut in its header it never returns, and it drops what is left of a cut event.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spikformer.data.events.formats.source import (
    check_sensor,
    count_events,
    read_source,
    smallest_size,
    text_header,
    unwrap_stamps,
)
from spikformer.errors import FileError, printable
from spikformer.sampling import Recording

_EVENT_BYTES = 5
_OVERFLOW_ROW = 240
_OVERFLOW_US = 1 << 13
_NMNIST, _NCALTECH101 = (34, 34), (180, 240)


def read_nmnist(path: Path) -> Recording:
    """No header; events of 40 bits, the first byte highest: 8 column · 8 row · 1 ON · 23 microseconds.

    An event in row 240 is none: the recorder's clock overflowed, and all later ones are 2¹³ µs later than they say
    (G. Orchard's reader, eventvision.py). The file does not say its sensor: N-MNIST has 34 × 34 pixels, N-Caltech101
    180 × 240. Where the median event lies tells them apart, so that a few damaged ones do not. Takes at most 16 times
    the file's size of memory.
    """
    data = read_source(path, b"", "an N-MNIST file")
    count = count_events(data, 0, _EVENT_BYTES, path)
    columns = np.frombuffer(data, np.uint8).reshape(count, _EVENT_BYTES).T
    x, y, high, middle, low = np.ascontiguousarray(columns)
    time_us = (high & 127).astype(np.int64) << 16 | middle.astype(np.int64) << 8 | low
    on = high & 128 != 0

    overflow = y == _OVERFLOW_ROW
    if overflow.any():
        time_us += overflow.cumsum() * _OVERFLOW_US
        keep = ~overflow
        time_us, x, y, on = time_us[keep], x[keep], y[keep], on[keep]
    is_nmnist = len(x) == 0 or max(np.median(x), np.median(y)) < _NMNIST[0]
    size = _NMNIST if is_nmnist else _NCALTECH101
    return Recording(time_us, x.astype(np.int16), y.astype(np.int16), on, size, size_is_guessed=True)


_CD_TYPES = (0, 12)  # Event2d and EventCD: one layout under two names

# N-CARS cuts cars out of a 240 × 304 sensor, at most 100 × 120, and does not say so.
_SIZES = [(100, 120), (240, 304), (480, 640), (720, 1280)]


def read_prophesee(path: Path) -> Recording:
    """Lines of text that start with %, a byte for the type of events, a byte for their size, then little-endian events.

    uint32 microseconds · uint32 with column in bits 0-13, row in 14-27, ON in 28. Columns and rows count from the
    upper left corner. The lines may give the sensor (`% Width 640`, `% Height 480`). Takes at most 8 times the file's
    size of memory.
    """
    data = read_source(path, b"%", "a Prophesee .dat file")
    lines, start = text_header(data, b"%", b"% end", path)
    entries = dict(line.split(maxsplit=1) for line in lines if " " in line)
    if (version := entries.get("Version", "none")) != "2":
        raise FileError(path, f"states the version {printable(version)}, expected 2.", "unsupported")
    if start + 2 > len(data):
        raise FileError(path, f"is cut off in its header, at byte {len(data)}.", "truncated", at=len(data))
    kind, event_bytes = data[start], data[start + 1]
    if kind not in _CD_TYPES or event_bytes != 8:
        raise FileError(
            path,
            f": byte {start} states events of type {kind} and {event_bytes} bytes, expected contrast changes "
            "(type 0 or 12) of 8 bytes.",
            "unsupported",
            at=start,
        )

    count = count_events(data, start + 2, event_bytes, path)
    words = np.frombuffer(data, "<u4", 2 * count, start + 2).reshape(count, 2)
    event = words[:, 1].astype(np.uint32)
    polarity = event >> 28
    if count and polarity.max() > 1:
        first = int((polarity > 1).argmax())
        raise FileError(
            path, f": event {first} has polarity {polarity[first]}, expected 0 or 1; the file is damaged.", at=first
        )
    x, y = (event & 0x3FFF).astype(np.int16), (event >> 14 & 0x3FFF).astype(np.int16)
    time_us, stated = unwrap_stamps(words[:, 0].astype(np.uint32)), _stated_size(entries, path)
    size = stated or smallest_size(x, y, _SIZES)
    return Recording(time_us, x, y, polarity != 0, size, size_is_guessed=stated is None)


def _stated_size(entries: dict[str, str], path: Path) -> tuple[int, int] | None:
    if "Height" not in entries or "Width" not in entries:
        return None
    height, width = entries["Height"], entries["Width"]
    if not (height.isdecimal() and width.isdecimal() and len(height + width) < 20):
        raise FileError(
            path,
            f"states a sensor of height {printable(height)} and width {printable(width)}, expected numbers.",
            at="sensor",
        )
    return check_sensor(int(height), int(width), path)
