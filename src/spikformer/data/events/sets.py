"""Event sets by name: CIFAR10-DVS, DVS128 Gesture, N-MNIST, and any folder of classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.dataset import DIGITS, DamagedFilesError, DataSet, read_each
from spikformer.data.events.formats import ENDINGS, read_recording
from spikformer.data.events.samples import Clip, FrameCache, LabelledClips, RecordingSamples
from spikformer.data.options import DataOptions
from spikformer.data.splits import (
    VALIDATION_SHARE,
    Kind,
    LabelledFiles,
    can_mirror,
    complete_splits,
    first_of_each_class,
    hold_out,
    label_files,
    listed,
    scan_class,
    scan_folders,
)
from spikformer.data.unpacking import unpack
from spikformer.errors import FileError, printable
from spikformer.io import cache_folder

RECORDINGS = Kind("recordings", ENDINGS)
AEDAT = Kind("recordings", (".aedat",))

CIFAR10_DVS_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
GESTURES = (
    "hand_clapping",
    "right_hand_wave",
    "left_hand_wave",
    "right_arm_clockwise",
    "right_arm_counter_clockwise",
    "left_arm_clockwise",
    "left_arm_counter_clockwise",
    "arm_roll",
    "air_drums",
    "air_guitar",
    "other_gestures",
)
_TRAIN_SHARE = 0.9
_LOOKED_AT = 8  # recordings, to guess a sensor


def cifar10dvs(root: Path, options: DataOptions) -> DataSet:
    """Ten thousand photographs of CIFAR-10, moved in front of a DVS128: ten folders or .zip files of AEDAT 2.0.

    Official: there is no split; the first 90 % of every class, in the order of file names, are for training. Rows and
    columns are swapped, as SpikingJelly reads these files, so that weights trained on its frames see what they know.
    """
    found = read_each(partial(_class_files, root, name) for name in CIFAR10_DVS_CLASSES)
    files = label_files(dict(zip(CIFAR10_DVS_CLASSES, found, strict=True)), CIFAR10_DVS_CLASSES)
    train, test = first_of_each_class(files.labels, _TRAIN_SHARE)
    splits = {"train": _whole_files(files.take(train)), "test": _whole_files(files.take(test))}
    return _event_set("cifar10dvs", options, CIFAR10_DVS_CLASSES, splits, (128, 128), mirror=True, swapped=True)


def dvs128(root: Path, options: DataOptions) -> DataSet:
    """DVS128 Gesture: 11 gestures of 29 people, 122 recordings of AEDAT 3.1, each of many gestures; official trials.

    Testing is on people that training has not seen; so is validation.
    """
    folder = _gesture_folder(root)
    lists = [partial(read_gestures, folder, f"trials_to_{split}.txt") for split in ("train", "test")]
    train, test = read_each(lists)
    shared = {gesture.path for gesture in train} & {gesture.path for gesture in test}
    if shared:
        raise FileError(
            folder,
            f": {min(shared).name} is in both trial lists; a test on it would say nothing.",
            "unfit",
            at=min(shared).name,
        )
    splits = {"train": _stretches(train), "test": _stretches(test)}
    people = np.array([gesture.path.name.partition("_")[0] for gesture in train])
    held = _some_people(people, VALIDATION_SHARE if options.validation_share is None else options.validation_share)
    if held.any() and not held.all():
        clips = splits["train"]
        splits |= {"train": clips.take(np.flatnonzero(~held)), "validation": clips.take(np.flatnonzero(held))}
    return _event_set("dvs128", options.override(validation_share=0.0), GESTURES, splits, (128, 128), mirror=False)


def n_mnist(root: Path, options: DataOptions) -> DataSet:
    """MNIST moved in front of an event camera of 34×34: Train/<digit>/*.bin and Test/<digit>/*.bin, or their .zip."""
    for name in ("Train", "Test"):
        if (root / f"{name}.zip").is_file():
            unpack(root / f"{name}.zip", root / name, (".bin",), kept_parts=2)
    folders = scan_folders(root, RECORDINGS, DIGITS)
    for split in ("train", "test"):
        if split not in folders.splits:
            raise FileNotFoundError(f"{root} has no {split.title()}/ nor {split.title()}.zip.")
    splits = {split: _whole_files(files) for split, files in folders.splits.items()}
    return _event_set("n_mnist", options, folders.class_names, splits, (34, 34), mirror=False)


def event_folder(root: Path, options: DataOptions) -> DataSet:
    """<split>/<class>/* or <class>/* of any known format; `complete_splits` says which split is what.

    Frames have the sensor's size unless another one is asked for. Where files do not say their sensor, a few of them
    are looked at, and the smallest usual one that holds their events is taken for all.
    """
    folders = scan_folders(root, RECORDINGS, options.class_names, flat=True)
    splits = {split: _whole_files(files) for split, files in folders.splits.items()}
    sensor = options.sensor or _likely_sensor(splits)
    mirror = can_mirror(folders.class_names)
    return _event_set("event_folder", options, folders.class_names, splits, sensor, mirror=mirror)


def _likely_sensor(splits: Mapping[str, LabelledClips]) -> tuple[int, int]:
    """What the first recording states, or the largest that some of them, spread over the set, let guess.

    Those that cannot be read are passed over: one damaged file should not keep the others from being used.
    """
    clips = next(iter(splits.values())).clips
    spread = [clips[index * len(clips) // _LOOKED_AT] for index in range(_LOOKED_AT)]
    guesses: list[tuple[int, int]] = []
    errors: list[Exception] = []
    for clip in dict.fromkeys([*spread, *clips]):
        try:
            recording = read_recording(clip.path)
        except (ValueError, OSError) as error:
            errors.append(error)
            continue
        if not recording.size_is_guessed:
            return recording.size
        guesses.append(recording.size)
        if len(guesses) == min(_LOOKED_AT, len(clips)):
            break
    if not guesses:
        raise DamagedFilesError(errors)
    return max(guesses)


def _class_files(root: Path, name: str) -> list[str]:
    folder, archive = root / name, root / f"{name}.zip"
    if not folder.is_dir() and archive.is_file():
        unpack(archive, folder, (".aedat",))
    if not folder.is_dir():
        there = listed(sorted(path.name for path in root.iterdir())) if root.is_dir() else "is no folder"
        raise FileNotFoundError(f"{root} should hold {name}/ or {name}.zip, with nine more of CIFAR10-DVS ({there}).")
    return scan_class(folder, AEDAT)


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


def _some_people(people: np.ndarray, share: float) -> np.ndarray:
    """Which gestures are shown by a share of the people, always the same ones."""
    names = np.unique(people)
    _, held = hold_out(np.zeros(len(names), np.int64), share)
    return np.isin(people, names[held])


def _whole_files(files: LabelledFiles) -> LabelledClips:
    return LabelledClips(tuple(Clip(path) for path in files.paths), files.labels)


def _stretches(gestures: Sequence[Gesture]) -> LabelledClips:
    clips = tuple(Clip(str(gesture.path), (gesture.start_us, gesture.end_us)) for gesture in gestures)
    return LabelledClips(clips, np.array([gesture.label for gesture in gestures], np.int64))


def _event_set(
    name: str,
    options: DataOptions,
    class_names: tuple[str, ...],
    splits: Mapping[str, LabelledClips],
    sensor: tuple[int, int],
    *,
    mirror: bool,
    swapped: bool = False,
) -> DataSet:
    seen, cache = options.events(sensor, swap_axes=swapped), _frame_cache(options.cache_gb)
    samples = {
        split: RecordingSamples(*clips, seen, cache)
        for split, clips in complete_splits(splits, options.validation_share).items()
    }
    return DataSet(
        name=name,
        class_names=class_names,
        preprocessing=seen,
        train=samples.get("train"),
        validation=samples.get("validation"),
        test=samples.get("test"),
        can_mirror=mirror,
    )


def _frame_cache(gigabytes: float | None) -> FrameCache | None:
    gigabytes = 10.0 if gigabytes is None else gigabytes
    cache = FrameCache(cache_folder() / "frames", int(gigabytes * 1e9))
    return cache if gigabytes and cache.is_usable() else None


# The label files and trial lists of DVS128 Gesture: which stretch of which recording shows what.

_MAX_TEXT_BYTES = 1 << 20  # of a list or a label file; the largest published one has 3 KB
_COLUMNS = "class,startTime_usec,endTime_usec"


class Gesture(NamedTuple):
    """A stretch of a recording, and its label from 0."""

    path: Path
    label: int
    start_us: int
    end_us: int


def read_gestures(folder: Path, trials: str) -> list[Gesture]:
    """The gestures of trials_to_train.txt or trials_to_test.txt, in the order of the list and of each label file.

    Some people show a gesture twice, or in another order than the rest: every row of a label file is a sample.
    """
    path = folder / trials
    names = [line.strip() for line in _lines(path) if line.strip()]
    if not names:
        raise FileError(path, "names no recordings.", "empty")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise FileError(path, f"names {printable(repeated[0])} twice.", at=printable(repeated[0]))
    return list(chain(*read_each(partial(_read_labels, folder / name, path) for name in names)))


def _read_labels(recording: Path, trials: Path) -> list[Gesture]:
    if recording.suffix != ".aedat" or recording.parent != trials.parent:
        raise FileError(
            trials, f"names {printable(recording.name)!r}, expected the name of an .aedat file.", at=recording.name
        )
    if not recording.is_file():
        raise FileNotFoundError(f"{trials} names {printable(recording.name)}, but {recording.parent} does not hold it.")
    path = recording.with_name(f"{recording.stem}_labels.csv")
    header, *rows = _lines(path) or [""]
    if header.strip().replace(" ", "") != _COLUMNS:
        raise FileError(path, f"should start with the line {_COLUMNS}, got {printable(header, 60)!r}.", "foreign", at=1)
    gestures = [_parse(row, path, number, recording) for number, row in enumerate(rows, 2) if row.strip()]
    if not gestures:
        raise FileError(path, "holds no gestures.", "empty")
    return gestures


def _parse(row: str, path: Path, line: int, recording: Path) -> Gesture:
    cells = row.split(",")
    if len(cells) != 3 or not all(cell.strip().isdecimal() and len(cell) < 20 for cell in cells):
        raise FileError(
            path, f", line {line}: expected three integers for {_COLUMNS}, got {printable(row, 60)!r}.", at=line
        )
    number, start, end = map(int, cells)
    if end >= 2**63:
        raise FileError(path, f", line {line}: the gesture ends at {end} µs, expected less than 2⁶³.", at=line)
    if not 1 <= number <= len(GESTURES):
        raise FileError(path, f", line {line}: the class is {number}, expected 1 to {len(GESTURES)}.", at=line)
    if start >= end:
        raise FileError(
            path, f", line {line}: the gesture starts at {start} and ends at {end} µs; it must end later.", at=line
        )
    return Gesture(recording, number - 1, start, end)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}; it comes with the recordings.")
    if (size := path.stat().st_size) > _MAX_TEXT_BYTES:
        raise FileError(path, f"has {size} bytes, expected {_MAX_TEXT_BYTES} at most; it is another file.", "too_large")
    return path.read_bytes().decode("latin-1").splitlines()
