"""Contact sheets: everything in its place, whatever the captions say."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from spikformer.visualise.contact_sheet import Row, contact_sheet
from spikformer.visualise.tiles import BACKGROUND, EVENT_LEGEND

TILE = (200, 0, 200)  # a colour that no letter has
LETTERS = st.text(st.characters(), max_size=60)  # of any script, lone surrogates and control characters among them


def row(caption: str = "cat", count: int = 3, side: int = 64) -> Row:
    return Row(caption, [Image.new("RGB", (side, side), TILE) for _ in range(count)])


def tile_boxes(sheet: Image.Image, side: int) -> list[tuple[int, int]]:
    """Left and top of every tile that is whole; a letter over one would break it."""
    sums = np.pad((np.asarray(sheet) == TILE).all(-1).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    inside = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    return [(int(left), int(top)) for top, left in np.argwhere(inside == side**2)]


def written(sheet: Image.Image, left: int, right: int) -> bool:
    return bool((np.asarray(sheet)[:, left:right] != BACKGROUND).any())


def test_a_sheet_grows_with_its_rows_and_columns() -> None:
    def size(num_rows: int, num_columns: int) -> np.ndarray:
        return np.array(contact_sheet([row(count=num_columns, side=192)] * num_rows, title="Sheet").size)

    assert (size(3, 4) - size(2, 4)).tolist() == (size(4, 4) - size(3, 4)).tolist() == [0, 192 + 12]
    assert (size(2, 5) - size(2, 4)).tolist() == (size(2, 6) - size(2, 5)).tolist() == [192 + 12, 0]


def test_tiles_stand_in_straight_rows_and_columns() -> None:
    sheet = contact_sheet([row(count=3), row(count=1), row(count=2)], title="Sheet", column_names=["a", "b", "c"])
    boxes = tile_boxes(sheet, 64)
    lefts, tops = (sorted(set(edges)) for edges in zip(*boxes, strict=True))
    assert [(lefts.index(left), tops.index(top)) for left, top in boxes] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 1),
        (0, 2),
        (1, 2),
    ]
    assert len(set(np.diff(lefts))) == len(set(np.diff(tops))) == 1


@given(caption=LETTERS, title=LETTERS, name=LETTERS)
@example("猫と犬", "قطة على الطاولة", "😀👨‍👩‍👧")
@example("x" * 300, "word " * 300, "n" * 300)
@example("Z̸͓̈́a̵̡͝l̵̰̇g̶̨̈́o̴̝͝" * 20, "\u202eright to left\u202c", "\n\r\t\0")
@example("name\udcff.jpg", "a\nb\n\n\nc\nd\ne", "")
@settings(max_examples=40, deadline=None)
def test_no_caption_title_or_name_is_drawn_over_a_tile(caption: str, title: str, name: str) -> None:
    rows = [row(caption, side=40), row("cat", side=40)]
    sheet = contact_sheet(rows, title=title, column_names=[name], legend=EVENT_LEGEND)
    assert len(tile_boxes(sheet, 40)) == 6
    margins = np.concatenate([np.asarray(sheet)[:, :56].reshape(-1, 3), np.asarray(sheet)[-56:].reshape(-1, 3)])
    assert (margins == BACKGROUND).all(), "the margins stay free"


def test_a_caption_stands_left_of_its_row_and_a_gap_before_the_tiles() -> None:
    sheet = contact_sheet([row("x" * 300)], title="")
    left = tile_boxes(sheet, 64)[0][0]
    assert written(sheet, 56, left - 32)
    assert not written(sheet, left - 30, left)
    assert left <= 56 + 340 + 32


def test_a_caption_higher_than_its_tiles_stretches_the_row() -> None:
    boxes = tile_boxes(contact_sheet([row("one\ntwo\nthree", 1, 24)] * 2, title="Sheet"), 24)
    assert boxes[1][1] - boxes[0][1] > 3 * 26


def test_the_legend_shows_its_colours() -> None:
    def has(sheet: Image.Image, colour: tuple[int, ...]) -> bool:
        return bool((np.asarray(sheet) == colour).all(-1).any())

    with_legend, without = (
        contact_sheet([row()], title="Sheet", legend=EVENT_LEGEND),
        contact_sheet([row()], title="Sheet"),
    )
    for _, colour in EVENT_LEGEND:
        assert has(with_legend, colour)
        assert not has(without, colour)


def test_letters_of_a_very_wide_sheet_are_larger() -> None:
    def left(count: int) -> int:
        return tile_boxes(contact_sheet([row("caption", count, 192)], title="Sheet"), 192)[0][0]

    assert left(20) == pytest.approx(2 * left(10), abs=4)
    assert left(10) == left(2)


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="needs at least one row, got none"):
        contact_sheet([], title="Sheet")
    with pytest.raises(ValueError, match="needs at least one tile, 'dog' has none"):
        contact_sheet([row(), row("dog", 0)], title="Sheet")
    with pytest.raises(ValueError, match="squares of one side, got 32×32, 64×64"):
        contact_sheet([row(), row(side=32)], title="Sheet")
    with pytest.raises(ValueError, match="squares of one side, got 8×9"):
        contact_sheet([Row("cat", [Image.new("RGB", (8, 9))])], title="Sheet")
    with pytest.raises(ValueError, match="of 3 columns got 4 names"):
        contact_sheet([row()], title="Sheet", column_names=list("abcd"))
