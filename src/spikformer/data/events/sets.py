"""Event sets by name: CIFAR10-DVS, DVS128 Gesture, N-MNIST, and any folder of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.class_folders import Kind, LabelledFiles, label_files, listed, scan_folders
from spikformer.data.dataset import DataSet
from spikformer.data.events.cache import FrameCache
from spikformer.data.events.formats import ENDINGS, read_recording
from spikformer.data.events.frames import Fit, FrameForm, Slicing
from spikformer.data.events.gestures import GESTURES, Gesture, read_gestures
from spikformer.data.events.samples import Clip, LabelledClips, RecordingSamples
from spikformer.data.mirroring import can_mirror
from spikformer.data.splits import complete_splits, first_of_each_class
from spikformer.data.unpacking import unpack

RECORDINGS = Kind("recordings", ENDINGS)

CIFAR10_DVS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_TRAIN_SHARE = 0.9


class EventForm(NamedTuple):
    """What frames should be like; a size of None is the sensor's."""

    time_steps: int = 16
    size: tuple[int, int] | None = None
    slicing: Slicing = "count"
    fit: Fit = "resize"
    validation_share: float = 0.1
    class_names: Sequence[str] | None = None
    cache: FrameCache | None = None


def cifar10dvs(root: Path, form: EventForm) -> DataSet:
    """Ten thousand photographs of CIFAR-10, moved in front of a DVS128: ten folders or .zip files of AEDAT 2.0.

    Official: there is no split; the first 90 % of every class, in the order of file names, are for training. Rows and
    columns are swapped, as SpikingJelly reads these files, so that weights trained on its frames see what they know.
    """
    classes = {name: _class_files(root, name) for name in CIFAR10_DVS}
    files = label_files(classes, CIFAR10_DVS)
    train, test = first_of_each_class(files.labels, _TRAIN_SHARE)
    splits = {"train": _whole_files(files.take(train)), "test": _whole_files(files.take(test))}
    return _event_set("cifar10dvs", form, CIFAR10_DVS, splits, (128, 128), mirror=True, swapped=True)


def dvs128(root: Path, form: EventForm) -> DataSet:
    """DVS128 Gesture: 11 gestures of 29 people, 122 recordings of AEDAT 3.1, each of many gestures; official trials."""
    folder = _gesture_folder(root)
    splits = {split: read_gestures(folder, f"trials_to_{split}.txt") for split in ("train", "test")}
    shared = {gesture.path for gesture in splits["train"]} & {gesture.path for gesture in splits["test"]}
    if shared:
        raise ValueError(f"{folder}: {min(shared).name} is in both trial lists; a test on it would say nothing.")
    clips = {split: _stretches(gestures) for split, gestures in splits.items()}
    return _event_set("dvs128", form, GESTURES, clips, (128, 128), mirror=False)


def n_mnist(root: Path, form: EventForm) -> DataSet:
    """MNIST moved in front of an event camera of 34×34: Train/<digit>/*.bin and Test/<digit>/*.bin, or their .zip."""
    for name in ("Train", "Test"):
        if (root / f"{name}.zip").is_file():
            unpack(root / f"{name}.zip", root / name, (".bin",), kept_parts=2)
    folders = scan_folders(root, RECORDINGS, tuple("0123456789"))
    for split in ("train", "test"):
        if split not in folders.splits:
            raise FileNotFoundError(f"{root} has no {split.title()}/ nor {split.title()}.zip.")
    splits = {split: _whole_files(files) for split, files in folders.splits.items()}
    return _event_set("n_mnist", form, folders.class_names, splits, (34, 34), mirror=False)


def event_folder(root: Path, form: EventForm) -> DataSet:
    """<split>/<class>/* of any known format; `complete_splits` says which split is what.

    Frames have the first recording's size unless another one is asked for.
    """
    folders = scan_folders(root, RECORDINGS, form.class_names)
    splits = {split: _whole_files(files) for split, files in folders.splits.items()}
    sensor = form.size or _first_sensor(splits)
    mirror = can_mirror(folders.class_names)
    return _event_set("event_folder", form, folders.class_names, splits, sensor, mirror=mirror)


def _first_sensor(splits: Mapping[str, LabelledClips]) -> tuple[int, int]:
    """Of the first recording that can be read: one damaged file should not keep the others from being used."""
    reasons = []
    for clip in next(iter(splits.values())).clips:
        try:
            return read_recording(clip.path).size
        except ValueError as error:
            reasons.append(error)
    raise ValueError(f"None of {len(reasons)} recordings can be read; the first: {reasons[0]}")


def _class_files(root: Path, name: str) -> list[str]:
    folder, archive = root / name, root / f"{name}.zip"
    if not folder.is_dir() and archive.is_file():
        unpack(archive, folder, (".aedat",))
    if not folder.is_dir():
        there = listed(sorted(path.name for path in root.iterdir())) if root.is_dir() else "is no folder"
        raise FileNotFoundError(f"{root} should hold {name}/ or {name}.zip, with nine more of CIFAR10-DVS ({there}).")
    paths = sorted(str(path) for path in folder.glob("*.aedat"))
    if not paths:
        raise ValueError(f"{folder} holds no .aedat files.")
    return paths


def _gesture_folder(root: Path) -> Path:
    """The folder with the trial lists: the one given, the DvsGesture/ in it, or what DvsGesture.tar.gz unpacks to."""
    if root.is_file():
        return unpack(root, root.with_name("DvsGesture"), (".aedat", ".csv", ".txt"))
    for folder in (root, root / "DvsGesture"):
        if (folder / "trials_to_train.txt").is_file():
            return folder
    if (root / "DvsGesture.tar.gz").is_file():
        return unpack(root / "DvsGesture.tar.gz", root / "DvsGesture", (".aedat", ".csv", ".txt"))
    raise FileNotFoundError(f"{root} has no trials_to_train.txt, DvsGesture/ or DvsGesture.tar.gz of DVS128 Gesture.")


def _whole_files(files: LabelledFiles) -> LabelledClips:
    return LabelledClips(tuple(Clip(path) for path in files.paths), files.labels)


def _stretches(gestures: Sequence[Gesture]) -> LabelledClips:
    clips = tuple(Clip(str(gesture.path), (gesture.start_us, gesture.end_us)) for gesture in gestures)
    return LabelledClips(clips, np.array([gesture.label for gesture in gestures], np.int64))


def _event_set(
    name: str,
    form: EventForm,
    class_names: tuple[str, ...],
    splits: Mapping[str, LabelledClips],
    sensor: tuple[int, int],
    *,
    mirror: bool,
    swapped: bool = False,
) -> DataSet:
    frames = FrameForm(form.time_steps, form.size or sensor, form.slicing, form.fit)
    samples = {
        split: RecordingSamples(*clips, frames, form.cache, swapped)
        for split, clips in complete_splits(splits, form.validation_share).items()
    }
    return DataSet(
        name=name,
        class_names=class_names,
        channels=2,
        size=frames.size,
        events=True,
        train=samples.get("train"),
        validation=samples.get("validation"),
        test=samples.get("test"),
        can_mirror=mirror,
    )
