"""Safetensors files: the same bytes for the same tensors, read into memory of their own, and checked before that.

    u64, length of the header · header, JSON: name → dtype, shape, [begin, end] · the tensors' bytes, without gaps

Any program with the safetensors library reads them. That library itself orders metadata at random and maps a file
into memory instead of reading it, so that a model changes with the file it came from, and a truncated file is fatal.

Bounds: opening a file takes time and memory in proportion to its header (about 50 bytes and a microsecond for each of
its bytes), which may have 8 MiB; reading all tensors takes as much memory as the file has bytes, and no more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from spikformer.errors import FileError, shown
from spikformer.io import atomic_file, check_is_file

LONGEST_HEADER = 1 << 23
_MOST_AXES = 16
_ITEM_BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4}
_ITEM_BYTES |= {"F64": 8, "I64": 8, "U64": 8}  # in the order in which the library sorts them, backwards
_NUMPY = {
    code: np.dtype(f"{'b' if code == 'BOOL' else code[0].lower()}{size}")
    for code, size in _ITEM_BYTES.items()
    if code != "BF16"
}
_CODES = {dtype: code for code, dtype in _NUMPY.items()}
WEIGHTS_FORMAT, ENGINE_FORMAT, STATE_FORMAT = "spikformer", "spikformer-engine", "spikformer-state"
WEIGHTS_VERSION = 1
"""Of a weights file, which `models` writes and `engine` reads too."""
_KINDS = {
    WEIGHTS_FORMAT: ("weights", "`sf.load` and `spikformer evaluate` take it"),
    ENGINE_FORMAT: ("an engine", "`sf.load_engine` and `spikformer predict` take it"),
    STATE_FORMAT: ("the state of a training run", "`spikformer train --resume` takes the folder it is in"),
}


def write_tensors(path: Path, tensors: Mapping[str, tuple[str, np.ndarray]], metadata: Mapping[str, str]) -> None:
    """Write arrays, each with its safetensors dtype, atomically and without copies of those that are contiguous."""
    codes = list(_ITEM_BYTES)
    names = sorted(tensors, key=lambda name: (-codes.index(tensors[name][0]), name))
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    end = 0
    for name in names:
        code, array = tensors[name]
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the data of every tensor is aligned in the file
    if len(text) > LONGEST_HEADER:
        raise FileError(
            path, f"would need a header of {len(text):,} bytes; at most {LONGEST_HEADER:,} are read.", "too_large"
        )
    with atomic_file(path) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in names:
            file.write(_bytes_of(np.ascontiguousarray(tensors[name][1])).data)


def with_code(array: np.ndarray) -> tuple[str, np.ndarray]:
    """An array with its safetensors dtype."""
    return _CODES[array.dtype], array


@dataclass(frozen=True)
class Entry:
    """A tensor as the header describes it; its bytes are counted from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class TensorFile:
    """An open file whose header is sound: tensors fill the rest of the file, without gaps or overlaps."""

    path: Path
    metadata: dict[str, str]
    entries: dict[str, Entry]
    _file: BufferedReader
    _data: int

    def check_kind(self, wanted: str, version: int) -> None:
        """Raise unless the file says that it holds what is wanted, in a version that can be read."""
        found = self.metadata.get("format", "")
        if found != wanted:
            expected = _KINDS[wanted][0]
            if found in _KINDS:
                kind, remedy = _KINDS[found]
                raise FileError(self.path, f"holds {kind}, not {expected}; {remedy}.", "foreign")
            raise FileError(
                self.path,
                f"is a safetensors file of another program, expected {expected}; "
                "`spikformer import` converts the authors' weights.",
                "foreign",
            )
        given = self.metadata.get("format_version", "")
        if not (given.isascii() and given.isdecimal() and len(given) < 10 and int(given) <= version):
            raise FileError(
                self.path,
                f"has format version {shown(given)}, this release reads up to {version}; update spikformer.",
                "unsupported",
            )

    def json(self, key: str, *types: type) -> Any:
        """A value of the metadata that is JSON, of one of these types."""
        try:
            value = json.loads(self.metadata[key], object_pairs_hook=_without_duplicates)
        except (KeyError, ValueError, RecursionError):
            value = self  # of no type that JSON has
        if not isinstance(value, types):
            raise FileError(self.path, f"holds no readable {key}; it is damaged, write it again.", at=key)
        return value

    def read_numpy(self, name: str) -> np.ndarray:
        """A tensor as an array that owns its memory."""
        entry = self.entries[name]
        if entry.dtype not in _NUMPY:
            raise FileError(
                self.path, f": {shown(name)} is {entry.dtype}, which NumPy does not have.", "unsupported", at=name
            )
        array = np.empty(entry.shape, _NUMPY[entry.dtype])
        self.read_into(name, array)
        return array

    def read_into(self, name: str, array: np.ndarray) -> None:
        """Fill a contiguous array of the tensor's size with its bytes."""
        entry = self.entries[name]
        self._file.seek(self._data + entry.begin)
        if self._file.readinto(_bytes_of(array).data) != entry.end - entry.begin:
            raise FileError(self.path, f": {shown(name)} is cut off; the file became shorter.", "truncated", at=name)


@contextmanager
def open_tensors(path: Path) -> Iterator[TensorFile]:
    """A safetensors file after its header was checked; another file is a ValueError that names it."""
    check_is_file(path)
    with path.open("rb") as file:
        try:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= size - 8:
                raise ValueError("its header does not fit into it")
            if length > LONGEST_HEADER:
                raise ValueError(f"its header has {length:,} bytes, at most {LONGEST_HEADER:,} are read")
            header = json.loads(file.read(length).decode(), object_pairs_hook=_without_duplicates)
            metadata, entries = _checked(header, size - 8 - length)
        except RecursionError:
            raise _not_safetensors(path, "its header is nested too deeply") from None
        except json.JSONDecodeError:
            raise _not_safetensors(path, "its header is not JSON") from None
        except UnicodeDecodeError:
            raise _not_safetensors(path, "its header is not UTF-8") from None
        except ValueError as error:
            raise _not_safetensors(path, str(error)) from None
        yield TensorFile(path, metadata, entries, file, 8 + length)


def _not_safetensors(path: Path, problem: str) -> FileError:
    return FileError(
        path,
        f"is truncated or not a safetensors file ({problem}); "
        "write it again, or convert the authors' weights with `spikformer import`.",
    )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("its header has a name twice")
    return found


def _checked(header: Any, size: int) -> tuple[dict[str, str], dict[str, Entry]]:
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata is not text")
    entries = {name: _entry(name, value) for name, value in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != end:
            raise ValueError(f"{shown(name)} begins at byte {shown(entry.begin)}, expected {end}")
        end = entry.end
    if end != size:
        raise ValueError(f"its tensors end at byte {shown(end)}, expected {size}")
    return metadata, entries


def _entry(name: str, value: Any) -> Entry:
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{shown(name)} lacks dtype, shape or data_offsets")
    code, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(code, str) or code not in _ITEM_BYTES:
        raise ValueError(f"{shown(name)} has the dtype {shown(code)}, expected one of {', '.join(_ITEM_BYTES)}")
    if not _are_counts(shape) or len(shape) > _MOST_AXES:
        raise ValueError(f"{shown(name)} has no shape")
    if prod(max(length, 1) for length in shape) * _ITEM_BYTES[code] >= 1 << 62:
        raise ValueError(f"{shown(name)} has the shape {shown(shape)}, larger than any memory")
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[1] - offsets[0] != prod(shape) * _ITEM_BYTES[code]:
        raise ValueError(f"{shown(name)} has another number of bytes than its shape")
    return Entry(code, tuple(shape), *offsets)


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
