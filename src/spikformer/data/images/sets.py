"""Image sets by name: MNIST, Fashion-MNIST, CIFAR-10 and -100, ImageNet, and any folder of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.dataset import DIGITS, ArraySamples, DataSet, LabelledImages, preprocessed, read_sample
from spikformer.data.images.cifar import read_cifar
from spikformer.data.images.mnist import read_mnist
from spikformer.data.images.picture import ENDINGS
from spikformer.data.options import DataOptions
from spikformer.data.splits import Kind, LabelledFiles, Subset, can_mirror, complete_splits, scan_folders
from spikformer.preprocessing import Preprocessing

PICTURES = Kind("images", ENDINGS)

_FASHION = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


class Normalisation(NamedTuple):
    mean: tuple[float, ...]
    std: tuple[float, ...]


MNIST_NORMALISATION = Normalisation((0.1307,), (0.3081,))
FASHION_MNIST_NORMALISATION = Normalisation((0.2860,), (0.3530,))
# Official: CIFAR-10's, for CIFAR-100, too.
CIFAR_NORMALISATION = Normalisation((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
IMAGENET_NORMALISATION = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True, eq=False, repr=False)
class PictureSamples:
    """Picture files, decoded and preprocessed one by one."""

    files: LabelledFiles
    preprocessing: Preprocessing

    @property
    def labels(self) -> np.ndarray:
        return self.files.labels

    def __len__(self) -> int:
        return len(self.files.paths)

    def __getitem__(self, index: int) -> np.ndarray:
        return read_sample(self.files.paths[index], self.preprocessing)

    def source(self, index: int) -> str:
        return self.files.paths[index]


def mnist(root: Path, options: DataOptions) -> DataSet:
    """60,000 and 10,000 handwritten digits of 28×28, gray."""
    return _array_set("mnist", options, *read_mnist(root), DIGITS, MNIST_NORMALISATION, mirror=False)


def fashion_mnist(root: Path, options: DataOptions) -> DataSet:
    """60,000 and 10,000 pieces of clothing of 28×28, gray."""
    return _array_set("fashion_mnist", options, *read_mnist(root), _FASHION, FASHION_MNIST_NORMALISATION, mirror=True)


def cifar(root: Path, options: DataOptions, name: str) -> DataSet:
    """50,000 and 10,000 photographs of 32×32 in 10 or 100 classes."""
    files = read_cifar(root, name)
    return _array_set(name, options, files.train, files.test, files.class_names, CIFAR_NORMALISATION, mirror=True)


cifar10 = partial(cifar, name="cifar10")
cifar100 = partial(cifar, name="cifar100")


def image_folder(root: Path, options: DataOptions, name: str = "image_folder") -> DataSet:
    """<split>/<class>/* or <class>/*, of any formats and sizes; `complete_splits` says which split is what."""
    folders = scan_folders(root, PICTURES, options.class_names, flat=name == "image_folder")
    files = complete_splits(folders.splits, options.validation_share)
    seen = options.images((224, 224), 3, *IMAGENET_NORMALISATION, crop_ratio=0.875)

    def samples(split: str, form: Preprocessing = seen) -> PictureSamples | None:
        return PictureSamples(files[split], form) if split in files else None

    return DataSet(
        name=name,
        class_names=folders.class_names,
        preprocessing=seen,
        train=samples("train", replace(seen, crop_ratio=1.0)),  # Official: training crops at scale 1, all of it
        validation=samples("validation"),
        test=samples("test"),
        can_mirror=can_mirror(folders.class_names),
    )


imagenet = partial(image_folder, name="imagenet")


def _array_set(
    name: str,
    options: DataOptions,
    train: LabelledImages,
    test: LabelledImages,
    class_names: tuple[str, ...],
    normalisation: Normalisation,
    *,
    mirror: bool,
) -> DataSet:
    given = {"train": Subset.whole(ArraySamples(*train, f"{name}, train"))}
    given["test"] = Subset.whole(ArraySamples(*test, f"{name}, test"))
    seen = options.images(train.images.shape[2:], train.images.shape[1], *normalisation)
    complete = complete_splits(given, options.validation_share)
    splits = {split: preprocessed(samples, seen) for split, samples in complete.items()}
    return DataSet(
        name=name,
        class_names=class_names,
        preprocessing=seen,
        train=splits["train"],
        validation=splits.get("validation"),
        test=splits["test"],
        can_mirror=mirror,
    )
