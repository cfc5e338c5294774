"""Any set of image files sorted into folders: train/<class>/*, val/<class>/*, test/<class>/*. ImageNet is one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.images.picture import ENDINGS

_FOLDERS = {"train": ("train",), "validation": ("val", "validation"), "test": ("test",)}


class LabelledFiles(NamedTuple):
    """Paths in the order of classes and names, and their labels int64 [N]."""

    paths: tuple[str, ...]
    labels: np.ndarray


@dataclass(frozen=True)
class ImageFolder:
    """What a folder holds: the classes, and the files of each split that is there."""

    root: Path
    class_names: tuple[str, ...]
    splits: Mapping[str, LabelledFiles]

    def split(self, name: str) -> LabelledFiles:
        """The files of "train", "validation" or "test"."""
        if name not in _FOLDERS:
            raise ValueError(f"A split is one of {', '.join(_FOLDERS)}, got {name!r}.")
        if name not in self.splits:
            folder = " or ".join(f"{folder}/<class>/" for folder in _FOLDERS[name])
            raise FileNotFoundError(f"{self.root} holds {_listed(self.splits)}, but no {folder}; put its images there.")
        return self.splits[name]


def scan_folder(root: str | os.PathLike[str], class_names: Sequence[str] | None = None) -> ImageFolder:
    """The classes and files below a folder; any one split will do.

    Labels count the class names in sorted order: those of train, without it those of all other splits. A part of a
    set, such as ImageNet's val with some of its 1000 classes, needs the `class_names` that a model was trained with.
    """
    root = Path(root)
    if root.is_file():
        raise ValueError(f"{root} is a file, expected a folder with train/<class>/ and val/<class>/.")
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {root}.")
    found = {split: _scan_split(folder) for split, folder in _split_folders(root)}
    if not found:
        raise FileNotFoundError(
            f"{root} should hold train/<class>/ and val/<class>/ (or validation, test), but holds "
            f"{_listed(sorted(os.listdir(root)))}."
        )
    if class_names is None:
        names = tuple(sorted(found.get("train") or {name for classes in found.values() for name in classes}))
    else:
        names = tuple(class_names)
    for split, classes in found.items():
        if unknown := classes.keys() - set(names):
            where = "train" if class_names is None else "the list of class names"
            raise ValueError(f"{root}: {split} has the class {_listed(sorted(unknown))}, which is not in {where}.")
    return ImageFolder(root, names, {split: _labelled(classes, names) for split, classes in found.items()})


def _split_folders(root: Path) -> Iterator[tuple[str, Path]]:
    for split, names in _FOLDERS.items():
        folders = [root / name for name in names if (root / name).is_dir()]
        if len(folders) > 1:
            raise ValueError(f"{root} holds both {' and '.join(names)}; which is meant? Rename one of them.")
        yield from ((split, folder) for folder in folders)


def _scan_split(folder: Path) -> dict[str, list[str]]:
    """The image files of each class, by its name."""
    classes = {}
    with os.scandir(folder) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(".")]
    for entry in visible:
        if not entry.is_dir():
            continue
        with os.scandir(entry.path) as files:
            classes[entry.name] = sorted(file.path for file in files if _is_image(file))
        if not classes[entry.name]:
            raise ValueError(
                f"{entry.path} holds no images; expected files that end in {', '.join(ENDINGS)}, not in folders below."
            )
    if not classes:
        loose = sum(map(_is_image, visible))
        what = f"{loose} images, but no folders to tell their classes" if loose else "no images"
        raise ValueError(f"{folder} holds {what}; expected {folder.name}/<class>/*.")
    return classes


def _is_image(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.name.lower().endswith(ENDINGS) and entry.is_file()


def _labelled(classes: Mapping[str, list[str]], names: Sequence[str]) -> LabelledFiles:
    present = [(label, classes[name]) for label, name in enumerate(names) if name in classes]
    labels = np.repeat([label for label, _ in present], [len(paths) for _, paths in present])
    return LabelledFiles(tuple(path for _, paths in present for path in paths), labels.astype(np.int64))


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    first = list(names)[:3]
    more = f" and {len(names) - len(first)} more" if len(names) > len(first) else ""
    return ", ".join(first) + more if first else "nothing"
