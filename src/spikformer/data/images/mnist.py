"""MNIST and Fashion-MNIST as published: four files in the IDX format, gzipped or not.

IDX is one array in a file: two zero bytes, a byte for the type, a byte for the number of axes, each axis' length as a
big-endian uint32, then the values, big-endian, last axis fastest. No header is believed: memory is taken only for
bytes that are there.
"""

from __future__ import annotations

import os
from functools import partial
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.archives import open_content
from spikformer.data.dataset import LabelledImages, read_each
from spikformer.errors import FileError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_AXES = 8  # images have three; NumPy gives up somewhere above
_MAX_BYTES = 1 << 30  # EMNIST, the largest set in this format, has half of it


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The array in an IDX file, in the machine's byte order and free to be written to.

    Takes three times the memory of the array, which may have 1 GiB, and not more than `largest_content`.
    """
    path = Path(path)
    if path.is_file() and (size := path.stat().st_size) > _MAX_BYTES:
        raise FileError(path, f"has {size:,} bytes, expected {_MAX_BYTES:,} at most; it is another file.", "too_large")
    with open_content(path, _MAX_BYTES) as file:
        header = file.read(4)
        if len(header) < 4:
            raise FileError(path, f"has {len(header)} bytes, too few for an IDX file; get it again.", "truncated")
        if header[:2] != b"\0\0" or header[2] not in _TYPES:
            raise FileError(
                path,
                f"is not an IDX file: it starts with {header.hex(' ')}, expected 00 00, then one of "
                f"{', '.join(f'{code:02x}' for code in _TYPES)}.",
                "foreign",
            )
        shape = _read_shape(file.read(4 * header[3]), header[3], path)
        dtype = np.dtype(_TYPES[header[2]])
        expected = prod(shape) * dtype.itemsize
        values = file.read(expected + 1)  # one more, to notice what should not be there
    if len(values) != expected:
        there = "more" if len(values) > expected else str(len(values))
        raise FileError(
            path,
            f"announces {'×'.join(map(str, shape))} values in {expected} bytes and holds {there}; "
            "it is damaged or cut short, get it again.",
            "truncated",
        )
    return np.frombuffer(values, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _read_shape(lengths: bytes, num_axes: int, path: Path) -> tuple[int, ...]:
    if not 1 <= num_axes <= _MAX_AXES:
        raise FileError(path, f"announces {num_axes} axes in byte 3, expected 1 to {_MAX_AXES}.")
    if len(lengths) < 4 * num_axes:
        raise FileError(
            path, f"ends in its header, before the lengths of its {num_axes} axes; get it again.", "truncated"
        )
    shape = tuple(np.frombuffer(lengths, ">u4").tolist())
    if 0 in shape:
        raise FileError(path, f"announces {'×'.join(map(str, shape))} values: it holds nothing.", "empty")
    return shape


_NUM_CLASSES = 10


class Mnist(NamedTuple):
    """Both splits, images uint8 [N, 1, 28, 28]."""

    train: LabelledImages
    test: LabelledImages


def read_mnist(root: Path) -> Mnist:
    """The set in a folder, or in the raw/ below it."""
    if root.is_file():
        raise FileError(root, "is a file, expected the folder with the four files of the set.", "foreign")
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {root}.")
    paths = [
        (_find(root, f"{prefix}-images-idx3-ubyte"), _find(root, f"{prefix}-labels-idx1-ubyte"))
        for prefix in ("train", "t10k")
    ]
    arrays = iter(read_each(partial(read_idx, path) for split in paths for path in split))
    train, test = read_each(partial(_labelled, *split, next(arrays), next(arrays)) for split in paths)
    return Mnist(train, test)


def _labelled(images_path: Path, labels_path: Path, images: np.ndarray, labels: np.ndarray) -> LabelledImages:
    if images.ndim != 3 or images.dtype != np.uint8:
        raise FileError(images_path, f"holds {images.dtype} {list(images.shape)}, expected bytes [N, height, width].")
    if labels.shape != (len(images),):
        raise FileError(
            labels_path,
            f"holds labels {list(labels.shape)} for {len(images)} images; they are not of one set.",
            "unfit",
        )
    outside = (labels < 0) | (labels >= _NUM_CLASSES)
    if outside.any():
        first = int(outside.argmax())
        raise FileError(
            labels_path,
            f": image {first} has label {labels[first]}, expected 0 to {_NUM_CLASSES - 1}; get it again.",
            at=first,
        )
    return LabelledImages(images[:, None], labels.astype(np.int64))


def _find(root: Path, name: str) -> Path:
    """Some copies write a dot before idx, and torchvision keeps its files in raw/."""
    spellings = [f"{stem}{ending}" for stem in (name, name.replace("-idx", ".idx")) for ending in ("", ".gz")]
    for path in (folder / spelling for folder in (root, root / "raw") for spelling in spellings):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{root} has no {name} (nor {name}.gz); put the four files of the set there.")
