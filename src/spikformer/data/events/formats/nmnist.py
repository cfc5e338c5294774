"""The .bin files of N-MNIST, and of N-Caltech101, which share the format.

Not tonic's `read_mnist_file`: for each overflow of the clock it walks the whole rest of the file, and a file cut in
mid-event it takes for whole or fails on with an error about shapes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spikformer.data.events.formats.source import count_events, read_source
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
