"""Whether classes survive a mirror, by their names."""

import pytest

from spikformer.data.mirroring import can_mirror


@pytest.mark.parametrize(
    "name",
    [
        "left",
        "turn-right",
        "right_hand_wave",
        "LeftArm",
        "arm roll clockwise",
        "counter_clockwise",
        "Right",
        "lefthand",
        "turnleft",
        "LEFTTurn",
        "leftwards",
        "cw",
        "ccw",
        "L",
        "b",
        "3",
    ],
)
def test_sides_are_found(name: str) -> None:
    assert not can_mirror(["cat", name])


@pytest.mark.parametrize(
    "name", ["bright", "upright piano", "leftover", "copyright", "clock", "truck", "cwm", "alright", "n01440764", ""]
)
def test_other_words_are_not_sides(name: str) -> None:
    assert can_mirror(["cat", name])
