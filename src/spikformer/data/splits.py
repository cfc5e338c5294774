"""Splits of a set, which samples are for training, validation and testing; and files sorted into folders of classes.

Folders are train/<class>/*, val/<class>/*, test/<class>/*, or <class>/* alone.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from spikformer.data.dataset import Samples, read_each
from spikformer.errors import FieldError, FileError, printable

logger = logging.getLogger(__name__)


class Divisible(Protocol):
    """Labelled things of which some can be taken."""

    @property
    def labels(self) -> np.ndarray: ...

    def take(self, indices: np.ndarray) -> Self: ...


@dataclass(frozen=True, eq=False, repr=False)
class Subset:
    """Some samples of a split, in the order of their indices."""

    samples: Samples
    indices: np.ndarray

    @classmethod
    def whole(cls, samples: Samples) -> Subset:
        return cls(samples, np.arange(len(samples)))

    @cached_property
    def labels(self) -> np.ndarray:
        return self.samples.labels[self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.samples[int(self.indices[index])]

    def source(self, index: int) -> str:
        return self.samples.source(int(self.indices[index]))

    def take(self, indices: np.ndarray) -> Subset:
        return Subset(self.samples, self.indices[indices])


Part = TypeVar("Part", bound=Divisible)
VALIDATION_SHARE = 0.1


def complete_splits(splits: Mapping[str, Part], validation_share: float | None = None) -> dict[str, Part]:
    """Splits as they are used: what is called test is for testing, without it validation is, as in ImageNet.

    Where that leaves no validation split, a share of every class of train is held out for it, always the same one, 0.1
    unless another is given; a share of 0 trains on all.
    """
    validation_share = VALIDATION_SHARE if validation_share is None else validation_share
    if not 0 <= validation_share < 1:
        raise FieldError(
            "validation_share", f"validation_share must be at least 0 and below 1, got {validation_share!r}."
        )
    complete = dict(splits)
    if "test" not in complete and "validation" in complete:
        complete["test"] = complete.pop("validation")
    if "train" in complete and "validation" not in complete and validation_share:
        kept, held = hold_out(complete["train"].labels, validation_share)
        if len(held):
            complete["train"], complete["validation"] = complete["train"].take(kept), complete["train"].take(held)
    return complete


def spread_samples(samples: Samples, count: int) -> Samples:
    """At most so many samples from all over a split, always the same, in order."""
    if count >= len(samples):
        return samples
    chosen = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    return Subset.whole(samples).take(chosen)


def hold_out(labels: np.ndarray, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Indices of what is kept and of what is held out, the same share of every class, drawn by the seed, in order."""
    random = np.random.default_rng(seed)
    held = [
        random.permutation(members)[: round(share * len(members))]
        for members in (np.flatnonzero(labels == label) for label in np.unique(labels))
    ]
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(labels)), out), out


def first_of_each_class(labels: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the first share of every class, rounded up, and of the rest."""
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    counts = [ceil(share * len(indices)) for indices in members]
    first = np.concatenate([indices[:count] for indices, count in zip(members, counts, strict=True)])
    rest = np.concatenate([indices[count:] for indices, count in zip(members, counts, strict=True)])
    return first, rest


_TEST_SHARE = 0.2
_FOLDERS = {"train": ("train", "training"), "validation": ("val", "valid", "validation"), "test": ("test", "testing")}


@dataclass(frozen=True)
class Paths(Sequence[str]):
    """Many paths in one array: processes that read ahead share it, where a million strings would be copied to each."""

    encoded: np.ndarray

    @classmethod
    def of(cls, paths: Sequence[str]) -> Paths:
        return cls(np.array([os.fsencode(path) for path in paths], np.bytes_))

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, index: Any) -> Any:
        return os.fsdecode(self.encoded[index])


class LabelledFiles(NamedTuple):
    """Paths in the order of classes and names, and their labels int64 [N]."""

    paths: Paths
    labels: np.ndarray

    def take(self, indices: np.ndarray) -> LabelledFiles:
        return LabelledFiles(Paths(self.paths.encoded[indices]), self.labels[indices])


@dataclass(frozen=True)
class ClassFolders:
    """What a folder holds: the classes, and the files of each split that is there."""

    class_names: tuple[str, ...]
    splits: Mapping[str, LabelledFiles]


@dataclass(frozen=True)
class Kind:
    """Which files count, and what to call them."""

    name: str
    endings: tuple[str, ...]

    def counts(self, entry: os.DirEntry[str]) -> bool:
        """A link that leads nowhere counts: reading it raises."""
        visible = not entry.name.startswith(".") and entry.name.lower().endswith(self.endings)
        return visible and (entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path)))


def scan_folders(
    root: Path, kind: Kind, class_names: Sequence[str] | None = None, *, flat: bool = False
) -> ClassFolders:
    """The classes and files below a folder; any one split will do. Train, TRAIN and train are the same split.

    With `flat`, a folder of classes without splits is one too: a fifth of every class is for testing.

    Labels count the class names in sorted order: those of train, without it those of all other splits. A part of a
    set, such as ImageNet's val with some of its 1000 classes, needs the `class_names` that a model was trained with.
    """
    if root.is_file():
        raise FileError(root, "is a file, expected a folder with train/<class>/ and val/<class>/.", "foreign")
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {root}.")
    folders = _split_folders(root)
    scanned = read_each(partial(scan_classes, folder, kind) for folder in folders.values())
    found = dict(zip(folders, scanned, strict=True))
    if not found and flat and any(entry.is_dir() and not entry.name.startswith(".") for entry in root.iterdir()):
        found = _divide(scan_classes(root, kind))
    if not found:
        raise FileNotFoundError(
            f"{root} should hold train/<class>/ and val/<class>/ (or validation, test), but holds "
            f"{listed(sorted(os.listdir(root)))}; put folders of classes into one called train."
        )
    if class_names is None:
        names = tuple(sorted(found.get("train") or {name for classes in found.values() for name in classes}))
    else:
        names = tuple(class_names)
        if len(set(names)) < len(names):
            raise FieldError("class_names", f"class_names must differ from each other, got {listed(names)}.")
    for split, classes in found.items():
        if unknown := classes.keys() - set(names):
            where = "train" if class_names is None else "the list of class names"
            raise FileError(
                root, f": {split} has the class {listed(sorted(unknown))}, which is not in {where}.", "unfit"
            )
    return ClassFolders(names, {split: label_files(classes, names) for split, classes in found.items()})


def _divide(classes: Mapping[str, list[str]]) -> dict[str, dict[str, list[str]]]:
    """Files for training and testing, always the same ones, whatever other classes there are."""
    divided: dict[str, dict[str, list[str]]] = {"train": {}, "test": {}}
    for name, files in classes.items():
        parts = hold_out(np.zeros(len(files), np.int64), _TEST_SHARE)
        for split, indices in zip(divided, parts, strict=True):
            if len(indices):
                divided[split][name] = [files[index] for index in indices]
    return {split: found for split, found in divided.items() if found}


def scan_classes(folder: Path, kind: Kind) -> dict[str, list[str]]:
    """The files of each class, by its name: <class>/*."""
    with os.scandir(folder) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(".")]
    names = [entry.name for entry in visible if entry.is_dir()]
    classes = dict(zip(names, read_each(partial(scan_class, folder / name, kind) for name in names), strict=True))
    if not classes:
        loose = sum(map(kind.counts, visible))
        what = f"{loose} {kind.name}, but no folders that name their classes" if loose else f"no {kind.name}"
        raise FileError(folder, f"holds {what}; expected {folder.name}/<class>/*.", "unfit" if loose else "empty")
    return classes


def scan_class(folder: Path, kind: Kind) -> list[str]:
    """The files of one class, by name; a class without any is reported."""
    with os.scandir(folder) as files:
        found = sorted(file.path for file in files if kind.counts(file))
    if not found:
        raise FileError(
            folder,
            f"holds no {kind.name}; expected files that end in {', '.join(kind.endings)}, not in folders below.",
            "empty",
        )
    return found


def label_files(classes: Mapping[str, list[str]], names: Sequence[str]) -> LabelledFiles:
    """Files in the order of the class names, labelled by their place in it."""
    present = [(label, classes[name]) for label, name in enumerate(names) if name in classes]
    labels = np.repeat([label for label, _ in present], [len(paths) for _, paths in present])
    return LabelledFiles(Paths.of([path for _, paths in present for path in paths]), labels.astype(np.int64))


def listed(names: Sequence[str] | Mapping[str, object]) -> str:
    """The first of many names, for an error message."""
    first = list(names)[:3]
    more = f" and {len(names) - len(first)} more" if len(names) > len(first) else ""
    return ", ".join(map(printable, first)) + more if first else "nothing"


def _split_folders(root: Path) -> dict[str, Path]:
    folders = sorted(entry for entry in root.iterdir() if entry.is_dir())
    found: dict[str, Path] = {}
    for split, names in _FOLDERS.items():
        meant = [folder for folder in folders if folder.name.lower() in names]
        if len(meant) > 1:
            both = " and ".join(folder.name for folder in meant)
            raise FileError(root, f"holds both {both}; which is meant? Rename one of them.")
        if meant:
            found[split] = meant[0]
    others = [
        folder.name for folder in folders if folder not in found.values() and not folder.name.startswith((".", "_"))
    ]
    if found and others:
        logger.warning("%s: %s is not the name of a split and is left out.", root, listed(others))
    return found


# Words, not parts of words: "bright" and "upright" say nothing about sides.
_SIDES = re.compile(
    r"(?<![a-z])((turn|hand|arm|side)?(left|right)(turn|hand|handed|arm|leg|side|wards?|most)?|(anti|counter)?clockwise|c?cw)(?![a-z])"
)


def can_mirror(class_names: Sequence[str]) -> bool:
    """No class is called left, right or clockwise, and none is a letter or digit: a mirror would make another of it."""
    return not any(len(name) == 1 or _SIDES.search(_words(name)) for name in class_names)


def _words(name: str) -> str:
    """In small letters, with camelCase and LEFTTurn parted."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()
