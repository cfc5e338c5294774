"""MNIST and Fashion-MNIST as published: four IDX files, gzipped or not."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.damage import read_each
from spikformer.data.images.idx import read_idx
from spikformer.data.images.labelled import LabelledImages

_NUM_CLASSES = 10


class Mnist(NamedTuple):
    """Both splits, images uint8 [N, 1, 28, 28]."""

    train: LabelledImages
    test: LabelledImages


def read_mnist(root: Path) -> Mnist:
    """The set in a folder, or in the raw/ below it."""
    if root.is_file():
        raise ValueError(f"{root} is a file, expected the folder with the four files of the set.")
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
        raise ValueError(f"{images_path} holds {images.dtype} {list(images.shape)}, expected bytes [N, height, width].")
    if labels.shape != (len(images),):
        raise ValueError(
            f"{labels_path} holds labels {list(labels.shape)} for {len(images)} images; they are not of one set."
        )
    outside = (labels < 0) | (labels >= _NUM_CLASSES)
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(
            f"{labels_path}: image {first} has label {labels[first]}, expected 0 to {_NUM_CLASSES - 1}; get it again."
        )
    return LabelledImages(images[:, None], labels.astype(np.int64))


def _find(root: Path, name: str) -> Path:
    """Some copies write a dot before idx, and torchvision keeps its files in raw/."""
    spellings = [f"{stem}{ending}" for stem in (name, name.replace("-idx", ".idx")) for ending in ("", ".gz")]
    for path in (folder / spelling for folder in (root, root / "raw") for spelling in spellings):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{root} has no {name} (nor {name}.gz); put the four files of the set there.")
