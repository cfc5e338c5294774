"""Lettering: what a text becomes before it is drawn."""

import numpy as np
import pytest
from PIL import ImageFont

from spikformer.visualise.lettering import _fitted, _printable, lettering, line_height

FONT = ImageFont.load_default(size=26)
INK = (0, 0, 0)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("0–50 µs", "0-50 us"),
        ("cat → dog", "cat -> dog"),
        ("Łódź, Malmö, Straße", "Lodz, Malmo, Strasse"),
        ("cafe\u0301", "cafe"),  # as macOS spells file names
        ("ＡＢ ½", "AB 1⁄2"),
        ("猫.png", "猫.png"),  # a box and an ending
        ("a\tb\0c\u202ed\nnext", "a b cd\nnext"),
        ("\udcff.jpg", "\ufffd.jpg"),
    ],
)
def test_a_letter_the_font_lacks_becomes_the_nearest(text: str, drawn: str) -> None:
    assert _printable(text) == drawn


def test_a_text_that_fits_is_left_whole() -> None:
    assert _fitted("tench", FONT, 340, 1) == ["tench"]
    assert _fitted("caneca\ncaneca_003.aedat", FONT, 340, 3) == ["caneca", "caneca_003.aedat"]


def test_a_long_text_is_wrapped_between_words_and_parts_of_a_name() -> None:
    assert _fitted("great white shark, white shark, man-eater", FONT, 340, 3) == [
        "great white shark, white",
        "shark, man-eater",
    ]
    assert _fitted("dvs128_walking_forwards_aedat2.aedat", FONT, 340, 3) == ["dvs128_walking_forwards_", "aedat2.aedat"]


def test_a_text_too_long_for_its_lines_loses_its_middle() -> None:
    text = "".join(chr(ord("a") + index % 26) for index in range(300))
    first, second, third = _fitted(text, FONT, 340, 3)
    assert text.startswith(first)
    assert text.endswith(third)
    assert "…" in second
    assert max(map(FONT.getlength, (first, second, third))) <= 340
    (line,) = _fitted(text, FONT, 100, 1)
    start, end = line.split("…")
    assert text.startswith(start)
    assert text.endswith(end)
    assert abs(len(start) - len(end)) <= 1


def test_a_text_without_end_is_not_measured_to_its_end() -> None:
    assert len(_printable("x" * 10_000_000)) == 401


def test_letters_are_whole_and_the_paper_no_larger_than_they_need() -> None:
    paper = lettering("Ågjpqy|_", 26, INK, 340)
    assert paper.height == line_height(26)
    assert paper.width < 340
    ink = np.asarray(paper).min(-1) < 60
    assert ink.any()
    assert not ink[-1].any(), "what hangs below the line has room"
    assert lettering("", 26, INK, 340).size == (0, 0)
