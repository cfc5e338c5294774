"""IDX, the format of MNIST and Fashion-MNIST: one array in a file, gzipped or not.

Two zero bytes, a byte for the type, a byte for the number of axes, each axis' length as a big-endian uint32, then
the values, big-endian, last axis fastest. No header is believed: memory is taken only for bytes that are there.
"""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

import numpy as np

from spikformer.data.compressed import open_content

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_AXES = 8  # images have three; NumPy gives up somewhere above
_MAX_BYTES = 1 << 30  # EMNIST, the largest set in this format, has half of it


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The array in an IDX file, in the machine's byte order and free to be written to.

    Takes three times the memory of the array, which may have 1 GiB, and not more than `largest_content`.
    """
    path = Path(path)
    with open_content(path, _MAX_BYTES) as file:
        header = file.read(4)
        if len(header) < 4:
            raise ValueError(f"{path} has {len(header)} bytes, too few for an IDX file; get it again.")
        if header[:2] != b"\0\0" or header[2] not in _TYPES:
            raise ValueError(
                f"{path} is not an IDX file: it starts with {header.hex(' ')}, expected 00 00, then one of "
                f"{', '.join(f'{code:02x}' for code in _TYPES)}."
            )
        shape = _read_shape(file.read(4 * header[3]), header[3], path)
        dtype = np.dtype(_TYPES[header[2]])
        expected = prod(shape) * dtype.itemsize
        values = file.read(expected + 1)  # one more, to notice what should not be there
    if len(values) != expected:
        there = "more" if len(values) > expected else str(len(values))
        raise ValueError(
            f"{path} announces {'×'.join(map(str, shape))} values in {expected} bytes and holds {there}; "
            "it is damaged or cut short, get it again."
        )
    return np.frombuffer(values, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _read_shape(lengths: bytes, num_axes: int, path: Path) -> tuple[int, ...]:
    if not 1 <= num_axes <= _MAX_AXES:
        raise ValueError(f"{path} announces {num_axes} axes in byte 3, expected 1 to {_MAX_AXES}.")
    if len(lengths) < 4 * num_axes:
        raise ValueError(f"{path} ends in its header, before the lengths of its {num_axes} axes; get it again.")
    shape = tuple(np.frombuffer(lengths, ">u4").tolist())
    if 0 in shape:
        raise ValueError(f"{path} announces {'×'.join(map(str, shape))} values: it holds nothing.")
    return shape
