"""Events in NumPy's formats: a structured array (.npy), as tonic holds them, or an archive of columns (.npz).

SpikingJelly converts CIFAR10-DVS and DVS128 Gesture to .npz; tonic reads neither. `np.load` is not used: it allocates
what an array's header claims before it looks for the data.
"""

from __future__ import annotations

import io
import sys
import warnings
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Protocol

import numpy as np

from spikformer.data.archives import Content, archive_errors, check_entries, open_zip
from spikformer.data.events.formats.source import check_sensor, open_source, read_source, smallest_size
from spikformer.errors import FileError, Reason, printable
from spikformer.sampling import Recording

FIELDS = ("t", "x", "y", "p")

# What fits the recording's own types.
_RANGES = {"t": (-(2**63), 2**63 - 1), "x": (0, 2**15 - 1), "y": (0, 2**15 - 1), "p": (-1, 1)}

# Of the usual sets, for files that do not say: N-MNIST, DVS128, DAVIS240, ATIS, DAVIS346, VGA, HD.
_SIZES = [(34, 34), (128, 128), (180, 240), (240, 304), (260, 346), (480, 640), (720, 1280)]


class _Readable(Protocol):
    def read(self, count: int, /) -> bytes: ...


def read_array(stream: _Readable, path: Path, array: str | None = None, num_axes: int = 1) -> np.ndarray:
    """An array of plain values in C order, of a file or one of its arrays; nothing is ever unpickled.

    Memory follows the bytes that are there, whatever the header claims.
    """

    def wrong(problem: str, reason: Reason = "damaged") -> FileError:
        return FileError(path, problem if array is None else f", array {array}, {problem}", reason, at=array)

    try:
        with warnings.catch_warnings(action="ignore"):  # of headers by Python 2, which are fine
            version = np.lib.format.read_magic(stream)  # type: ignore[arg-type]
            if version == (1, 0):
                shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)  # type: ignore[arg-type]
            elif version == (2, 0):
                shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(stream)  # type: ignore[arg-type]
            else:
                raise ValueError(f"version {version} of the format is not known here")
    except Exception as error:  # the header is a Python literal, and a damaged one can upset its parser in any way
        raise wrong(f"has a header that is cut off or damaged ({printable(error) or type(error).__name__}).") from None
    if dtype.hasobject:
        raise wrong("holds Python objects, which could carry code; nothing in it was loaded.", "unsafe")
    if len(shape) != num_axes or min(shape) < 0 or dtype.itemsize == 0 or (fortran_order and num_axes > 1):
        axes = "one dimension (fields t, x, y, p)" if num_axes == 1 else f"{num_axes} dimensions"
        raise wrong(f"has shape {printable(shape)} and type {printable(dtype)}, expected {axes}.", "foreign")
    expected = prod(shape) * dtype.itemsize
    content = stream.read(min(expected, sys.maxsize))
    if len(content) != expected:
        raise wrong(f"is cut off: {len(content)} of its {expected} bytes of data are there.", "truncated")
    return np.frombuffer(content, dtype).reshape(shape + dtype.shape)


def recording_of(columns: Mapping[str, np.ndarray], size: tuple[int, int] | None, path: Path) -> Recording:
    """Events from columns t (microseconds), x, y and p (1 for ON, 0 or -1 for OFF)."""
    lengths = {name: len(columns[name]) for name in FIELDS}
    if len(set(lengths.values())) > 1:
        raise FileError(path, f"has columns of different lengths: {lengths}.", "unfit")
    for name, (lowest, highest) in _RANGES.items():
        column = columns[name]
        if column.ndim != 1 or column.dtype.kind not in "iub":
            raise FileError(
                path,
                f": column {name} is of type {printable(column.dtype)}, expected integers (t in microseconds).",
                at=name,
            )
        if len(column) and not (lowest <= int(column.min()) and int(column.max()) <= highest):
            first = int(((column < lowest) | (column > highest)).argmax())
            raise FileError(
                path, f": event {first} has {name} = {column[first]}, expected {lowest} to {highest}.", at=first
            )
    x, y = columns["x"].astype(np.int16), columns["y"].astype(np.int16)
    time_us, on = columns["t"].astype(np.int64), columns["p"] > 0
    return Recording(time_us, x, y, on, size or smallest_size(x, y, _SIZES), size_is_guessed=size is None)


def read_npy(path: Path) -> Recording:
    """A .npy file of one structured array with the integer fields t, x, y and p in any order, others ignored.

    t is in microseconds, x and y count from the upper left corner, p is 1 for ON and 0 or -1 for OFF. Takes twice the
    file's size of memory, and 16 bytes for each event.
    """
    events = read_array(io.BytesIO(read_source(path, b"\x93NUMPY", "a NumPy array")), path)
    if missing := [name for name in FIELDS if name not in (events.dtype.names or ())]:
        raise FileError(
            path,
            f"lacks the fields {', '.join(missing)}; expected a structured array with t, x, y and p, "
            f"got {printable(events.dtype)}.",
            at=missing[0],
        )
    return recording_of({name: events[name] for name in FIELDS}, None, path)


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
        raise FileError(path, f"is damaged or not a NumPy archive ({error.strerror or error}).") from None
    size = columns.pop("size", None)
    if size is not None and (len(size) != 2 or size.dtype.kind not in "iu" or size.ndim != 1):
        raise FileError(
            path, f"states a size of {len(size)} {printable(size.dtype)}, expected height and width.", at="size"
        )
    return recording_of(columns, None if size is None else check_sensor(int(size[0]), int(size[1]), path), path)


def _read_columns(archive: zipfile.ZipFile, path: Path) -> dict[str, np.ndarray]:
    files = {entry.filename: entry for entry in archive.infolist()}
    entries = {name: files[f"{name}.npy"] for name in (*FIELDS, "size") if f"{name}.npy" in files}
    if missing := [name for name in FIELDS if name not in entries]:
        raise FileError(path, f"lacks the arrays {', '.join(missing)}; expected t, x, y and p.", at=missing[0])
    check_entries(list(entries.values()), path)
    columns = {}
    for name, entry in entries.items():
        with archive.open(entry) as member:
            columns[name] = read_array(Content(member, path, entry.file_size), path, name)
            member.read(1)  # past the end: this is where zipfile compares the checksum
    return columns
