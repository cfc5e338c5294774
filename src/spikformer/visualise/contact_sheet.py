"""A contact sheet: rows of tiles, each with a caption, under a title and a legend.

Sizes are for screens of high density: a sheet reads well at half its width, and at 1200 pixels when it is wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PIL import Image, ImageDraw

from spikformer.visualise.lettering import lettering, line_height
from spikformer.visualise.tiles import BACKGROUND, Colour

_INK: Colour = (32, 34, 38)
_FAINT_INK: Colour = (104, 106, 110)
_CAPTION_LINES, _TITLE_LINES = 3, 2


class Row(NamedTuple):
    """Tiles side by side, and what they show."""

    caption: str
    tiles: list[Image.Image]


class _Measures(NamedTuple):
    """In pixels."""

    title_size: int = 38
    caption_size: int = 26
    name_size: int = 24
    margin: int = 56
    space: int = 32  # between the parts of a sheet
    gap: int = 12  # between tiles
    caption_width: int = 340  # at most, as all widths here
    name_width: int = 200  # unless tiles are wider
    title_width: int = 560  # unless the sheet is wider
    patch: int = 20  # a colour of the legend


def contact_sheet(
    rows: Sequence[Row],
    *,
    title: str,
    column_names: Sequence[str] = (),
    legend: Sequence[tuple[str, Colour]] = (),
) -> Image.Image:
    """All rows under one title; columns may have names, colours a legend, and rows fewer tiles than others.

    A line break in a caption or title is kept.
    """
    side, num_columns = _form(rows, column_names)
    measures = _measures(side * num_columns)
    margin, space, gap = measures.margin, measures.space, measures.gap
    captions = [
        lettering(row.caption, measures.caption_size, _INK, measures.caption_width, _CAPTION_LINES) for row in rows
    ]
    name_width = max(side, measures.name_width)
    names = [lettering(name, measures.name_size, _FAINT_INK, name_width) for name in column_names]
    key = _key(legend, measures)

    caption_width = max(caption.width for caption in captions)
    first_column = margin + (caption_width + space if caption_width else 0)
    column_width = max([side, *(name.width for name in names)])
    columns = [first_column + index * (column_width + gap) for index in range(num_columns)]
    key_width = key.width + space if legend else 0
    right = max(columns[-1] + column_width, margin + measures.title_width + key_width)
    heading = lettering(title, measures.title_size, _INK, right - margin - key_width, _TITLE_LINES)

    names_top = margin + max(heading.height, key.height) + space if heading.height or legend else margin
    first_row = names_top + (line_height(measures.name_size) + gap if names else 0)
    row_height = max([side, *(caption.height for caption in captions)])
    bottom = first_row + len(rows) * (row_height + gap) - gap

    sheet = Image.new("RGB", (right + margin, bottom + margin), BACKGROUND)
    sheet.paste(heading, (margin, margin))
    sheet.paste(key, (right - key.width, margin + max(0, line_height(measures.title_size) - key.height) // 2))
    for left, name in zip(columns, names, strict=False):
        sheet.paste(name, (left + (column_width - name.width) // 2, names_top))
    for index, (row, caption) in enumerate(zip(rows, captions, strict=True)):
        top = first_row + index * (row_height + gap)
        sheet.paste(caption, (margin, top + (row_height - caption.height) // 2))
        for left, tile in zip(columns, row.tiles, strict=False):
            sheet.paste(tile, (left + (column_width - side) // 2, top + (row_height - side) // 2))
    return sheet


def _measures(tiles_width: int) -> _Measures:
    """Larger beyond ten tiles of 192 pixels, so that a sheet shrunk to fit a page keeps its letters readable."""
    scale = min(max(1.0, tiles_width / 1920), 2.0)
    return _Measures(*(round(scale * pixels) for pixels in _Measures()))


def _form(rows: Sequence[Row], column_names: Sequence[str]) -> tuple[int, int]:
    """The side of every tile, and the number of columns."""
    if not rows:
        raise ValueError("A contact sheet needs at least one row, got none.")
    for row in rows:
        if not row.tiles:
            raise ValueError(f"Each row of a contact sheet needs at least one tile, {row.caption!r} has none.")
    sizes = {tile.size for row in rows for tile in row.tiles}
    if len(sizes) > 1 or any(width != height for width, height in sizes):
        shown = ", ".join(f"{width}×{height}" for width, height in sorted(sizes)[:3])
        raise ValueError(f"The tiles of a contact sheet are squares of one side, got {shown}.")
    num_columns = max(len(row.tiles) for row in rows)
    if len(column_names) > num_columns:
        raise ValueError(f"A contact sheet of {num_columns} columns got {len(column_names)} names for them.")
    return rows[0].tiles[0].width, num_columns


def _key(legend: Sequence[tuple[str, Colour]], measures: _Measures) -> Image.Image:
    """The legend on one line: a patch of each colour and its name."""
    patch, gap, space = measures.patch, measures.gap, measures.space
    names = [lettering(name, measures.name_size, _FAINT_INK, measures.name_width) for name, _ in legend]
    width = sum(patch + gap + name.width + space for name in names) - space
    height = line_height(measures.name_size) if legend else 0
    key = Image.new("RGB", (max(width, 0), height), BACKGROUND)
    pen = ImageDraw.Draw(key)
    left, top = 0, (height - patch) // 2
    for (_, colour), name in zip(legend, names, strict=True):
        # An outline, for a colour as light as the sheet.
        pen.rectangle((left, top, left + patch - 1, top + patch - 1), colour, _INK, width=2)
        key.paste(name, (left + patch + gap, 0))
        left += patch + gap + name.width + space
    return key
