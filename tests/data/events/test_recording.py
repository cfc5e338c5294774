"""What is not a recording is named, with file and place."""

from pathlib import Path

import numpy as np
import pytest

from spikformer.data.events.formats import check
from spikformer.sampling import Recording


def recording(time_us: list[int], x: list[int], y: list[int]) -> Recording:
    return Recording(
        np.array(time_us, np.int64), np.array(x, np.int16), np.array(y, np.int16), np.ones(len(x), bool), (4, 6)
    )


def test_a_good_one_comes_back() -> None:
    good = recording([1, 1, 2], [0, 5, 3], [0, 3, 1])
    assert check(good, Path("good.aedat")) is good


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (recording([], [], []), r"bad\.aedat holds no events"),
        (
            recording([1, 2], [0, 6], [0, 0]),
            r"bad\.aedat: event 1 is at column 6, row 0, outside the sensor of 6 columns",
        ),
        (recording([1, 2], [0, 0], [0, 4]), r"event 1 is at column 0, row 4"),
        (recording([1, 2], [-1, 0], [0, 0]), r"event 0 is at column -1"),
        (recording([1, 5, 4], [0, 0, 0], [0, 0, 0]), r"time runs backwards at event 2, from 5 to 4 µs"),
    ],
)
def test_a_bad_one_is_named(bad: Recording, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check(bad, Path("bad.aedat"))
