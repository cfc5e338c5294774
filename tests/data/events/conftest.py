"""DVS128 Gesture, made small."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Rows = list[tuple[int, int, int, int]]


def rows(seed: int, count: int = 60, side: int = 128, start: int = 0) -> Rows:
    random = np.random.default_rng(seed)
    times = start + np.sort(random.integers(0, 100_000, count))
    return [(int(t), *map(int, random.integers(0, side, 2)), int(random.integers(0, 2))) for t in times]


@pytest.fixture
def make_gestures(tmp_path: Path, writers) -> Callable[..., Path]:
    """Three recordings of three gestures each: two for training, one for testing."""

    def make() -> Path:
        folder = tmp_path / "DvsGesture"
        folder.mkdir()
        for user in (1, 2, 24):
            name = f"user{user:02}_led"
            events = [event for k in range(4) for event in rows(10 * user + k, start=1_000_000 * k)]
            (folder / f"{name}.aedat").write_bytes(writers.formats["aedat3"].write(events))
            labels = "class,startTime_usec,endTime_usec\n8,0,100000\n5,1000000,1100000\n8,2000000,2100000\n"
            (folder / f"{name}_labels.csv").write_text(labels)
        (folder / "trials_to_train.txt").write_text("user01_led.aedat\nuser02_led.aedat\n\n")
        (folder / "trials_to_test.txt").write_text("user24_led.aedat\n")
        return folder

    return make
