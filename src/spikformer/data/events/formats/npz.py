"""Events as a NumPy archive of columns, as SpikingJelly converts CIFAR10-DVS and DVS128 Gesture to.

SpikingJelly writes these, tonic has no reader for them.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

from spikformer.data.events.formats.columns import FIELDS, read_array, recording_of
from spikformer.data.events.formats.sensors import check_size
from spikformer.data.events.formats.source import excerpt, open_source
from spikformer.data.events.recording import Recording

# All that zipfile and its decompressors raise for damage, beside ValueError.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, RuntimeError, OverflowError)


def read_npz(path: Path) -> Recording:
    """A .npz file (plain or compressed) of the integer arrays t, x, y and p, others ignored.

    t is in microseconds, x and y count from the upper left corner, p is 1 for ON and 0 or -1 for OFF. An array `size`
    may give the sensor's height and width; without it, the smallest usual one that holds all events is taken.
    """
    with open_source(path) as source:
        try:
            with zipfile.ZipFile(source) as archive:
                names = set(archive.namelist())
                if missing := [name for name in FIELDS if f"{name}.npy" not in names]:
                    raise ValueError(f"{path} lacks the arrays {', '.join(missing)}; expected t, x, y and p.")
                columns = {name: _member(archive, name, path) for name in FIELDS}
                size = _member(archive, "size", path) if "size.npy" in names else None
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is damaged or not a NumPy archive ({excerpt(error) or type(error).__name__})."
            ) from None
    if size is not None and len(size) != 2:
        raise ValueError(f"{path} states a size of {len(size)} numbers, expected height and width.")
    return recording_of(columns, None if size is None else check_size(int(size[0]), int(size[1]), path), path)


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    with archive.open(f"{name}.npy") as member:
        array = read_array(member, f"{path}, array {name}")
        member.read(1)  # past the end: this is where zipfile compares the checksum
    return array
