"""Image sets by name: MNIST, Fashion-MNIST, CIFAR-10 and -100, ImageNet, and any folder of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from spikformer.data.class_folders import Kind, scan_folders
from spikformer.data.dataset import DIGITS, ArraySamples, DataSet
from spikformer.data.images.cifar import read_cifar
from spikformer.data.images.labelled import LabelledImages
from spikformer.data.images.mnist import read_mnist
from spikformer.data.images.picture import ENDINGS
from spikformer.data.mirroring import can_mirror
from spikformer.data.samples import PictureSamples, preprocessed
from spikformer.data.splits import Subset, complete_splits
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


class ImageForm(NamedTuple):
    """What images should be like; None: as the set has them."""

    size: tuple[int, int] | None = None
    validation_share: float = 0.1
    crop_ratio: float = 0.875
    """Of files: how much of the short side evaluation sees. Training sees all of it (Official: a crop of scale 1)."""
    class_names: Sequence[str] | None = None


def mnist(root: Path, form: ImageForm) -> DataSet:
    """60,000 and 10,000 handwritten digits of 28×28, gray."""
    return _array_set("mnist", form, *read_mnist(root), DIGITS, MNIST_NORMALISATION, mirror=False)


def fashion_mnist(root: Path, form: ImageForm) -> DataSet:
    """60,000 and 10,000 pieces of clothing of 28×28, gray."""
    return _array_set("fashion_mnist", form, *read_mnist(root), _FASHION, FASHION_MNIST_NORMALISATION, mirror=True)


def cifar(root: Path, form: ImageForm, name: str) -> DataSet:
    """50,000 and 10,000 photographs of 32×32 in 10 or 100 classes."""
    files = read_cifar(root, name)
    return _array_set(name, form, files.train, files.test, files.class_names, CIFAR_NORMALISATION, mirror=True)


cifar10 = partial(cifar, name="cifar10")
cifar100 = partial(cifar, name="cifar100")


def image_folder(root: Path, form: ImageForm, name: str = "image_folder") -> DataSet:
    """train/<class>/*, val/<class>/*, test/<class>/*, of any formats and sizes; `complete_splits` says what is what."""
    folders = scan_folders(root, PICTURES, form.class_names)
    files = complete_splits(folders.splits, form.validation_share)
    seen = Preprocessing(
        kind="image",
        size=form.size or (224, 224),
        channels=3,
        crop_ratio=form.crop_ratio,
        mean=IMAGENET_NORMALISATION.mean,
        std=IMAGENET_NORMALISATION.std,
    )

    def samples(split: str, form: Preprocessing = seen) -> PictureSamples | None:
        return PictureSamples(files[split], form) if split in files else None

    return DataSet(
        name=name,
        class_names=folders.class_names,
        preprocessing=seen,
        train=samples("train", replace(seen, crop_ratio=1.0)),
        validation=samples("validation"),
        test=samples("test"),
        can_mirror=can_mirror(folders.class_names),
    )


imagenet = partial(image_folder, name="imagenet")


def _array_set(
    name: str,
    form: ImageForm,
    train: LabelledImages,
    test: LabelledImages,
    class_names: tuple[str, ...],
    normalisation: Normalisation,
    *,
    mirror: bool,
) -> DataSet:
    given = {"train": Subset.whole(ArraySamples(*train, f"{name}, train"))}
    given["test"] = Subset.whole(ArraySamples(*test, f"{name}, test"))
    seen = Preprocessing(
        kind="image",
        size=form.size or train.images.shape[2:],
        channels=train.images.shape[1],
        mean=normalisation.mean,
        std=normalisation.std,
    )
    complete = complete_splits(given, form.validation_share)
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
