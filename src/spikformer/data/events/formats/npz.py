"""Events as a NumPy archive of columns, as SpikingJelly converts CIFAR10-DVS and DVS128 Gesture to.

SpikingJelly writes these, tonic has no reader for them.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from spikformer.data.archives import archive_errors, check_entries, open_zip
from spikformer.data.compressed import Content
from spikformer.data.events.formats.columns import FIELDS, read_array, recording_of
from spikformer.data.events.formats.sensors import check_size
from spikformer.data.events.formats.source import open_source
from spikformer.sampling import Recording
from spikformer.vocabulary import printable


def read_npz(path: Path) -> Recording:
    """A .npz file (plain or compressed) of the integer arrays t, x, y and p, others ignored.

    t is in microseconds, x and y count from the upper left corner, p is 1 for ON and 0 or -1 for OFF. An array `size`
    may give the sensor's height and width; without it, the smallest usual one that holds all events is taken.

    The arrays may take `largest_content` together, which is checked before any is read; memory is twice that, and 16
    bytes for each event.
    """
    open_source(path).close()
    try:
        with archive_errors(path, "a NumPy archive"), open_zip(path) as archive:
            columns = _read_columns(archive, path)
    except OSError as error:  # zipfile seeks where a damaged directory points
        raise ValueError(f"{path} is damaged or not a NumPy archive ({error.strerror or error}).") from None
    size = columns.pop("size", None)
    if size is not None and (len(size) != 2 or size.dtype.kind not in "iu" or size.ndim != 1):
        raise ValueError(f"{path} states a size of {len(size)} {printable(size.dtype)}, expected height and width.")
    return recording_of(columns, None if size is None else check_size(int(size[0]), int(size[1]), path), path)


def _read_columns(archive: zipfile.ZipFile, path: Path) -> dict[str, np.ndarray]:
    files = {entry.filename: entry for entry in archive.infolist()}
    entries = {name: files[f"{name}.npy"] for name in (*FIELDS, "size") if f"{name}.npy" in files}
    if missing := [name for name in FIELDS if name not in entries]:
        raise ValueError(f"{path} lacks the arrays {', '.join(missing)}; expected t, x, y and p.")
    check_entries(list(entries.values()), path)
    columns = {}
    for name, entry in entries.items():
        with archive.open(entry) as member:
            columns[name] = read_array(Content(member, path, entry.file_size), f"{path}, array {name}")
            member.read(1)  # past the end: this is where zipfile compares the checksum
    return columns
