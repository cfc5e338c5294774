"""PyTorch's checkpoints (.pth), read without torch.load: nothing that a file names is imported or called.

torch.load(weights_only=True) calls what it knows, with the file's arguments: bytearray(1 << 33) is 8 GB for 20 bytes.
Here tensors are stand-ins until their sizes are known to be right, and only those of the weights are loaded.

Takes at most three times the file's size of memory, 100 MB for a pickle of a million instructions, and 25 MB for the
directory of a .zip, which may have 2 MiB; a larger one, or more than 20,000 weights, raises ValueError.
"""

from __future__ import annotations

import io
import struct
import sys
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import torch
from torch import Tensor

from spikformer.errors import FileError, printable
from spikformer.io import check_is_file
from spikformer.pickles import Dialect, Name, RefusedError, read_pickle

_MOST_WEIGHTS = 20_000  # the largest network that is known here has 1,000
_LARGEST_DIRECTORY = 1 << 21  # of a .zip: about as many
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_TYPES = {
    "torch.FloatStorage": torch.float32,
    "torch.DoubleStorage": torch.float64,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}
_DAMAGE = (ValueError, IndexError, KeyError, TypeError, struct.error, EOFError, OSError, RuntimeError, OverflowError)


def read_checkpoint(path: Path) -> Mapping[str, Any]:
    """What the file holds, with the tensors of its weights (see `weights_in`) loaded, each in memory of its own."""
    check_is_file(path)
    try:
        with path.open("rb") as file:
            is_zip = zipfile.is_zipfile(file)
            file.seek(0)
            checkpoint, storages = _read_zip(file) if is_zip else _read_legacy(io.BytesIO(file.read()))
            weights = _checked(weights_in(checkpoint))
            loaded = {key: storages.load(value) for key, value in weights.items() if isinstance(value, _Stored)}
    except RefusedError as refused:
        what = f"asks for {printable(refused.call)}" if refused.call else printable(refused)
        raise FileError(path, f"{what}; it was not loaded and nothing in it was executed.", "unsafe") from None
    except (*_DAMAGE, zipfile.BadZipFile) as error:
        reason = printable(error) or type(error).__name__
        raise FileError(path, f"is damaged or not a PyTorch checkpoint ({reason}).") from None
    weights.update(loaded)
    return checkpoint


def weights_in(checkpoint: Mapping[str, Any]) -> Any:
    # Official: scripts on timm write `state_dict`, most others `model`, one of SEW's `net`.
    return next((checkpoint[key] for key in ("state_dict", "model", "net") if key in checkpoint), checkpoint)


@dataclass(frozen=True)
class _Storage:
    kind: str
    key: str
    length: int


@dataclass(frozen=True)
class _Stored:
    """A tensor that was not loaded."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Storages:
    """The bytes of storages by their keys; all storages and all tensors may have as many bytes as the file."""

    def __init__(self, read: Callable[[_Storage], bytes], file_bytes: int) -> None:
        self._read, self._unread, self._unmade = read, file_bytes, file_bytes
        self._contents: dict[str, bytes] = {}

    def load(self, tensor: _Stored) -> Tensor:
        storage, dtype, count = tensor.storage, _TYPES[tensor.storage.kind], prod(tensor.shape)
        last = tensor.offset + sum((side - 1) * step for side, step in zip(tensor.shape, tensor.strides, strict=True))
        if count > storage.length or (count and last >= storage.length):
            raise ValueError(f"a tensor {list(tensor.shape)} in a storage of {storage.length}")
        is_new = storage.key not in self._contents
        self._unread -= storage.length * dtype.itemsize * is_new
        self._unmade -= count * dtype.itemsize
        if min(self._unread, self._unmade) < 0:
            raise ValueError("its tensors claim more than the file holds")
        if is_new:
            self._contents[storage.key] = self._read(storage)
        content = self._contents[storage.key]
        if len(content) != storage.length * dtype.itemsize:
            raise ValueError(f"a storage of {storage.length} values in {len(content)} bytes")
        if not count:
            return torch.empty(tensor.shape, dtype=dtype)
        with warnings.catch_warnings(action="ignore"):  # these bytes cannot be written to; the copy can
            values = torch.frombuffer(content, dtype=dtype)
        strided = values.as_strided(tensor.shape, tensor.strides, tensor.offset)
        return strided.clone(memory_format=torch.contiguous_format)


class _Bounded:
    """A file for zipfile, which reads a directory in one piece and makes an object of 500 bytes of each of its entries.

    Until `opened`, no piece has more than `_LARGEST_DIRECTORY` bytes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.opened = file, False
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, count: int = -1) -> bytes:
        if self.opened:
            return self._file.read(count)
        content = self._file.read(_LARGEST_DIRECTORY + 1 if count < 0 else min(count, _LARGEST_DIRECTORY + 1))
        if len(content) > _LARGEST_DIRECTORY:
            raise ValueError(f"its directory has more than {_LARGEST_DIRECTORY} bytes")
        return content


def _read_zip(file: BinaryIO) -> tuple[dict[str, Any], _Storages]:
    """A .zip, not packed: <name>/data.pkl, <name>/data/<key> for each storage, and <name>/byteorder."""
    bounded = _Bounded(file)
    archive = zipfile.ZipFile(cast(IO[bytes], bounded))
    bounded.opened = True
    entries = {entry.filename: entry for entry in archive.infolist()}
    file_bytes = file.seek(0, io.SEEK_END)
    (root,) = (name.removesuffix("data.pkl") for name in entries if name.endswith("/data.pkl"))

    def read(name: str) -> bytes:
        entry = entries[root + name]
        if entry.compress_type != zipfile.ZIP_STORED or max(entry.file_size, entry.compress_size) > file_bytes:
            raise ValueError(f"{entry.filename} is packed, or claims to have {entry.file_size} bytes")
        return archive.read(entry)

    if f"{root}byteorder" in entries and read("byteorder") != sys.byteorder.encode():
        raise ValueError("it is of a machine with another byte order")
    checkpoint = read_pickle(io.BytesIO(read("data.pkl")), _dialect({}))
    return _checked(checkpoint), _Storages(lambda storage: read(f"data/{storage.key}"), file_bytes)


def _read_legacy(file: io.BytesIO) -> tuple[dict[str, Any], _Storages]:
    """PyTorch before 1.6: five pickles, the last of them the storages' keys; then each one's length and values."""
    seen: dict[str, _Storage] = {}
    dialect = _dialect(seen)
    if read_pickle(file, dialect) != _LEGACY_MAGIC:
        raise ValueError("it does not start like one")
    _, system, checkpoint, keys = (read_pickle(file, dialect) for _ in range(4))
    if system["little_endian"] is not (sys.byteorder == "little"):
        raise ValueError("it is of a machine with another byte order")
    places, start = {}, file.tell()
    file_bytes = file.seek(0, io.SEEK_END)
    for key in _texts(keys):
        size = seen[key].length * _TYPES[seen[key].kind].itemsize
        places[key] = (start + 8, size)
        start += 8 + size

    def read(storage: _Storage) -> bytes:
        place, size = places[storage.key]
        file.seek(place)
        return file.read(min(size, file_bytes))

    return _checked(checkpoint), _Storages(read, file_bytes)


def _dialect(seen: dict[str, _Storage]) -> Dialect:
    """What checkpoints ask for; the storages they name are put into `seen`."""

    def storage(identifier: Any) -> _Storage:
        if type(identifier) is not tuple or len(identifier) not in (5, 6) or identifier[5:] not in ((), (None,)):
            raise TypeError("an identifier that is not a storage's")
        _, kind, key, _, length = identifier[:5]
        if type(kind) is not Name or type(key) is not str or not _is_count(length):
            raise TypeError("an identifier that is not a storage's")
        return seen.setdefault(key, _Storage(str(kind), key, length))

    def tensor(stored: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Stored:
        sides = (shape, strides)
        if type(stored) is not _Storage or not all(type(side) is tuple and all(map(_is_count, side)) for side in sides):
            raise TypeError("a tensor without sizes")
        if not _is_count(offset) or len(shape) != len(strides) or len(shape) > 8:
            raise ValueError("a tensor whose sizes do not fit")
        return _Stored(stored, offset, shape, strides)

    def parameter(stored: Any, *_: Any) -> _Stored:
        if type(stored) is not _Stored:
            raise TypeError("a parameter that is not a tensor")
        return stored

    def ordered_dict(*items: Any) -> dict[Any, Any]:
        if items:
            raise TypeError("an OrderedDict with its items, as Python 2 writes it")
        return {}

    def build(target: Any, state: Any) -> None:
        if type(target) is Namespace and type(state) is dict:
            target.__dict__ = state  # not a copy, which a file could ask for a hundred thousand times
        elif type(target) is not dict:  # a state dict's state is the versions of its modules
            raise TypeError(f"BUILD of {type(target).__name__}")

    calls: dict[str, Callable[..., Any]] = {
        "torch._utils._rebuild_tensor_v2": tensor,
        "torch._utils._rebuild_tensor": tensor,
        "torch._utils._rebuild_parameter": parameter,
        "collections.OrderedDict": ordered_dict,
        "collections.Counter": lambda *_: None,  # of a schedule
        "argparse.Namespace": lambda: Namespace(),
    }
    return Dialect(calls | dict.fromkeys(_TYPES, _no_call), build, storage)


def _no_call(*_: Any) -> None:
    raise TypeError("a call of a storage")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _texts(keys: Any) -> list[str]:
    if type(keys) is not list or not all(type(key) is str for key in keys):
        raise TypeError("keys of storages that are not text")
    return keys


def _checked(checkpoint: Any) -> dict[str, Any]:
    if type(checkpoint) is not dict:
        raise TypeError(f"it holds a {type(checkpoint).__name__}, expected a state dict")
    if len(checkpoint) > _MOST_WEIGHTS:
        raise ValueError(f"it has {len(checkpoint)} weights, expected at most {_MOST_WEIGHTS}")
    return checkpoint
