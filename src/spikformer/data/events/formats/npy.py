"""Events as one structured NumPy array, as tonic holds them.

Not tonic's reading: it has none for structured arrays, `np.load` aside (see `columns`).
"""

from __future__ import annotations

import io
from pathlib import Path

from spikformer.data.events.formats.columns import FIELDS, read_array, recording_of
from spikformer.data.events.formats.source import read_source
from spikformer.sampling import Recording
from spikformer.vocabulary import printable


def read_npy(path: Path) -> Recording:
    """A .npy file of one structured array with the integer fields t, x, y and p in any order, others ignored.

    t is in microseconds, x and y count from the upper left corner, p is 1 for ON and 0 or -1 for OFF. Takes twice the
    file's size of memory, and 16 bytes for each event.
    """
    events = read_array(io.BytesIO(read_source(path, b"\x93NUMPY", "a NumPy array")), str(path))
    if missing := [name for name in FIELDS if name not in (events.dtype.names or ())]:
        raise ValueError(
            f"{path} lacks the fields {', '.join(missing)}; expected a structured array with t, x, y and p, "
            f"got {printable(events.dtype)}."
        )
    return recording_of({name: events[name] for name in FIELDS}, None, path)
