"""CIFAR-10 and CIFAR-100 as published: the python or the binary version, as a folder or as the .tar.gz itself."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spikformer import pickles
from spikformer.data.dataset import LabelledImages, read_each
from spikformer.data.unpacking import find_files, read_found
from spikformer.errors import FieldError, FileError, printable
from spikformer.pickles import Dialect, Name, RefusedError, as_text

logger = logging.getLogger(__name__)


_NUM_PIXELS = 3 * 32 * 32


class Cifar(NamedTuple):
    """Both splits, images [N, 3, 32, 32], and the names of the classes: the fine ones of CIFAR-100."""

    train: LabelledImages
    test: LabelledImages
    class_names: tuple[str, ...]


class _Version(NamedTuple):
    """Where the files of one version are, and how they are called."""

    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    class_names: str


class _Kind(NamedTuple):
    """What the files of one set hold, and the versions it comes in."""

    num_classes: int
    label_key: str  # in the python version's dicts
    names_key: str
    label_bytes: int  # before the pixels in each row of the binary version; the last one is the label we want
    versions: tuple[_Version, ...]


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_BINARY_BATCHES = tuple(f"{name}.bin" for name in _BATCHES)
_CIFAR10 = (
    _Version("cifar-10-batches-py", "cifar-10-python.tar.gz", _BATCHES, "test_batch", "batches.meta"),
    _Version("cifar-10-batches-bin", "cifar-10-binary.tar.gz", _BINARY_BATCHES, "test_batch.bin", "batches.meta.txt"),
)
_CIFAR100 = (
    _Version("cifar-100-python", "cifar-100-python.tar.gz", ("train",), "test", "meta"),
    _Version("cifar-100-binary", "cifar-100-binary.tar.gz", ("train.bin",), "test.bin", "fine_label_names.txt"),
)
_KINDS = {
    "cifar10": _Kind(10, "labels", "label_names", 1, _CIFAR10),
    "cifar100": _Kind(100, "fine_labels", "fine_label_names", 2, _CIFAR100),
}


def read_cifar(root: str | os.PathLike[str], which: str) -> Cifar:
    """The set "cifar10" or "cifar100" from its archive, its folder, or a folder that holds one of these.

    A set with some of its five training files is read as far as it goes, and a warning says how far. Takes three times
    the files' size of memory, and 100 MB; a file may have 256 MiB, and see `find_files` for archives.
    """
    if which not in _KINDS:
        raise FieldError("which", f"which must be one of {', '.join(_KINDS)}, got {which!r}.")
    kind = _KINDS[which]
    source, version, files = _find(Path(root), kind)
    batches = [name for name in version.train if name in files]
    for needed in (version.test, version.class_names):
        if needed not in files:
            raise FileError(
                source, f"holds {', '.join(batches)}, but no {needed}; put it there, too.", "unfit", at=needed
            )
    if len(batches) < len(version.train):
        logger.warning("%s holds %d of %d training batches: read those.", source, len(batches), len(version.train))

    def read(name: str, parse: Callable[[bytes, str, _Kind], Any]) -> Any:
        return parse(read_found(files[name], f"{source}/{name}"), f"{source}/{name}", kind)

    parse_images = _read_rows if version.test.endswith(".bin") else _read_dict
    readers = [partial(read, version.class_names, _read_names)]
    readers += [partial(read, name, parse_images) for name in (*batches, version.test)]
    class_names, *train, test = read_each(readers)
    return Cifar(_joined(train), _joined([test]), class_names)


def _find(root: Path, kind: _Kind) -> tuple[Path, _Version, Mapping[str, Path | bytes]]:
    """The first place that has a training file of a version."""
    if not root.exists():
        raise FileNotFoundError(f"There is no file or folder {root}.")
    places = [root]
    if root.is_dir():
        places += [root / place for version in kind.versions for place in (version.folder, version.archive)]
    names = {name for version in kind.versions for name in (*version.train, version.test, version.class_names)}
    for place in filter(Path.exists, places):
        files = find_files(place, names)
        for version in kind.versions:
            if files.keys() & set(version.train):
                return place, version, files
    python, binary = kind.versions
    raise FileNotFoundError(
        f"{root} holds no training file of CIFAR-{kind.num_classes} ({python.train[0]} or {binary.train[0]}); give "
        f"{python.archive}, the folder {python.folder}, or the folder that holds one of them."
    )


def _read_dict(content: bytes, name: str, kind: _Kind) -> LabelledImages:
    values = _dict(content, name)
    pixels, labels = values.get("data"), values.get(kind.label_key)
    if not isinstance(pixels, np.ndarray) or pixels.shape[1] != _NUM_PIXELS:
        raise FileError(
            name, f"should hold rows of {_NUM_PIXELS} pixels as 'data'; it is damaged or another set's.", at="data"
        )
    if not isinstance(labels, list) or len(labels) != len(pixels) or not all(type(label) is int for label in labels):
        raise FileError(
            name, f"should hold {len(pixels)} labels as {kind.label_key!r}, one for each image.", at=kind.label_key
        )
    for row, label in enumerate(labels):
        _check_label(label, row, name, kind)
    return LabelledImages(pixels, np.array(labels))


def _read_rows(content: bytes, name: str, kind: _Kind) -> LabelledImages:
    """The binary version: rows of label bytes and pixels, nothing else."""
    width = kind.label_bytes + _NUM_PIXELS
    if not content or len(content) % width:
        raise FileError(
            name, f"has {len(content)} bytes, expected rows of {width}; it is cut short or another set's.", "truncated"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, width)
    labels = rows[:, kind.label_bytes - 1]
    outside = labels >= kind.num_classes
    if outside.any():
        _check_label(int(labels[outside.argmax()]), int(outside.argmax()), name, kind)
    return LabelledImages(rows[:, kind.label_bytes :], labels)


def _check_label(label: int, row: int, name: str, kind: _Kind) -> None:
    if not 0 <= label < kind.num_classes:
        raise FileError(
            name, f": image {row} has label {label}, expected 0 to {kind.num_classes - 1}; get it again.", at=row
        )


def _joined(parts: list[LabelledImages]) -> LabelledImages:
    """One copy of all, free to be written to; the parts are views of the files' bytes."""
    pixels, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return LabelledImages(pixels.reshape(-1, 3, 32, 32), labels.astype(np.int64))


def _read_names(content: bytes, name: str, kind: _Kind) -> tuple[str, ...]:
    if name.endswith(".txt"):
        names: Any = [line.strip() for line in content.decode("latin-1").splitlines() if line.strip()]
    else:
        names = _dict(content, name).get(kind.names_key)
    if not isinstance(names, list) or len(names) != kind.num_classes:
        raise FileError(name, f"should hold the names of {kind.num_classes} classes.")
    texts = tuple(text.decode("latin-1") if isinstance(text, bytes) else text for text in names)
    if not all(isinstance(text, str) and text and text.isprintable() for text in texts) or len(set(texts)) != len(
        texts
    ):
        raise FileError(name, f"should hold {kind.num_classes} different names of classes.")
    return texts


def _dict(content: bytes, name: str) -> dict[str, Any]:
    values = read_pickle(content, name)
    if not isinstance(values, dict):
        raise FileError(name, f"holds a {type(values).__name__}, expected a dict.", "foreign")
    return values


# The pickles of the python version: their only calls rebuild arrays of bytes. Protocol 2, or 3 and 4 if Python 3 saved
# them again.


class _Bytes:
    """The dtype uint8, or an array of it: as the pickle makes it, empty, then filled by BUILD."""

    array: np.ndarray | None = None


def read_pickle(content: bytes, name: str) -> Any:
    """Dicts, lists, tuples, numbers, text and uint8 arrays; `name` is the file's, for the error message.

    Takes at most three times the content's size of memory, and 100 MB (see `spikformer.pickles`).
    """
    stream = BytesIO(content)
    try:
        value = pickles.read_pickle(stream, _cifar())
        return {key: _plain(item) for key, item in value.items()} if type(value) is dict else _plain(value)
    except RefusedError as refused:
        raise FileError(
            name,
            f"{printable(refused, 200)}, before byte {stream.tell()}, which CIFAR's files do not; it was not "
            "loaded and nothing in it was executed.",
            "unsafe",
            at=stream.tell(),
        ) from None
    except (ValueError, IndexError, KeyError, TypeError) as error:
        reason = printable(error, 200) or type(error).__name__
        raise FileError(
            name, f"is damaged or not CIFAR's, before byte {stream.tell()} ({reason}).", at=stream.tell()
        ) from None


def _cifar() -> Dialect:
    @cache  # one copy of each text, however often the pickle asks for it
    def encode(text: str) -> bytes:
        return text.encode("latin-1")

    def encode_call(text: Any, encoding: Any) -> bytes:  # how Python 3 writes bytes for Python 2
        if encoding != "latin1":
            raise TypeError("text in another encoding than NumPy gives it")
        return encode(as_text(text))

    def array(kind: Any, *_: Any) -> _Bytes:
        if kind != "numpy.ndarray":
            raise TypeError("an array with other arguments than NumPy gives it")
        return _Bytes()

    def dtype(code: Any, *_: Any) -> _Bytes:
        if as_text(code) not in ("u1", "|u1"):
            raise RefusedError("holds an array that is not of uint8")
        return _Bytes()

    def build(target: Any, state: Any) -> None:
        """An array's state is (version, shape, dtype, Fortran order, bytes); a dtype's adds nothing to uint8."""
        if type(target) is not _Bytes or type(state) is not tuple:
            raise TypeError(f"BUILD of {type(target).__name__}")
        if len(state) != 5:
            return
        _, shape, kind, fortran_order, values = state
        values = encode(values) if type(values) is str else values
        if type(kind) is not _Bytes or type(values) is not bytes or fortran_order:
            raise TypeError("an array that is not plain bytes in C order")
        if type(shape) is not tuple or len(shape) != 2 or not all(type(side) is int and side > 0 for side in shape):
            raise ValueError("an array without rows and columns")
        if prod(shape) != len(values):
            raise ValueError(f"an array with {len(values)} bytes, which is not what its shape says")
        target.array = np.frombuffer(values, np.uint8).reshape(shape)

    def never(*_: Any) -> None:
        raise TypeError("a call of a type")

    reconstruct = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")  # NumPy 1 and 2
    calls: dict[str, Callable[..., Any]] = {"numpy.ndarray": never, "numpy.dtype": dtype, "_codecs.encode": encode_call}
    return Dialect(calls | dict.fromkeys(reconstruct, array), build)


def _plain(value: Any) -> Any:
    """The array in place of its stand-in."""
    if type(value) is Name or (type(value) is _Bytes and value.array is None):
        raise TypeError("a bare name or an unfinished array as a value")
    return value.array if type(value) is _Bytes else value
