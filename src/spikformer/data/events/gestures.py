"""The label files and trial lists of DVS128 Gesture: which stretch of which recording shows what."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from spikformer.data.dataset import read_each
from spikformer.messages import printable

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
        raise ValueError(f"{path} names no recordings.")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{path} names {printable(repeated[0])} twice.")
    return list(chain(*read_each(partial(_read_labels, folder / name, path) for name in names)))


def _read_labels(recording: Path, trials: Path) -> list[Gesture]:
    if recording.suffix != ".aedat" or recording.parent != trials.parent:
        raise ValueError(f"{trials} names {printable(recording.name)!r}, expected the name of an .aedat file.")
    if not recording.is_file():
        raise FileNotFoundError(f"{trials} names {printable(recording.name)}, but {recording.parent} does not hold it.")
    path = recording.with_name(f"{recording.stem}_labels.csv")
    header, *rows = _lines(path) or [""]
    if header.strip().replace(" ", "") != _COLUMNS:
        raise ValueError(f"{path} should start with the line {_COLUMNS}, got {printable(header, 60)!r}.")
    gestures = [_parse(row, f"{path}, line {number}", recording) for number, row in enumerate(rows, 2) if row.strip()]
    if not gestures:
        raise ValueError(f"{path} holds no gestures.")
    return gestures


def _parse(row: str, place: str, recording: Path) -> Gesture:
    cells = row.split(",")
    if len(cells) != 3 or not all(cell.strip().isdecimal() and len(cell) < 20 for cell in cells):
        raise ValueError(f"{place}: expected three whole numbers for {_COLUMNS}, got {printable(row, 60)!r}.")
    number, start, end = map(int, cells)
    if end >= 2**63:
        raise ValueError(f"{place}: the gesture ends at {end} µs, expected less than 2⁶³.")
    if not 1 <= number <= len(GESTURES):
        raise ValueError(f"{place}: the class is {number}, expected 1 to {len(GESTURES)}.")
    if start >= end:
        raise ValueError(f"{place}: the gesture starts at {start} and ends at {end} µs; it must end later.")
    return Gesture(recording, number - 1, start, end)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}; it comes with the recordings.")
    if (size := path.stat().st_size) > _MAX_TEXT_BYTES:
        raise ValueError(f"{path} has {size} bytes, expected {_MAX_TEXT_BYTES} at most; it is another file.")
    return path.read_bytes().decode("latin-1").splitlines()
