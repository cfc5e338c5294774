"""Mosaics: tiles of one size in rows and columns with titles, as a figure. Gaps are clear, on any page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spikformer.visualise.figures import INK, new_figure, printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PIXELS_PER_INCH = 150
_GAP = 10
# Of a mosaic in pixels: tiles of one that would be wider shrink, but not so far that titles meet.
_WIDEST, _SMALLEST = 2000, 0.4


def mosaic(
    tiles: np.ndarray, row_titles: Sequence[str], column_titles: Sequence[str], title: str = "", description: str = ""
) -> tuple[Figure, Axes]:
    """Tiles uint8 [rows, columns, H, W, RGB]; the middle of the first is at (0, 0), of its neighbours at 1.

    One picture on one pair of axes, however many tiles: laying out a hundred axes takes seconds.
    """
    num_rows, num_columns, height, width = tiles.shape[:4]
    if len(row_titles) != num_rows or len(column_titles) != num_columns:
        raise ValueError(
            f"{num_rows} rows and {num_columns} columns of tiles need as many titles, "
            f"got {len(row_titles)} and {len(column_titles)}."
        )
    names = [shortened(name) for name in row_titles]
    inches = min(1, max(_WIDEST / (num_columns * (width + _GAP)), _SMALLEST)) / _PIXELS_PER_INCH
    figure = new_figure(
        max(num_columns * (width + _GAP) * inches + 0.3 + 0.085 * max(map(len, names)), 3.0),
        num_rows * (height + _GAP) * inches + 0.4 + 0.3 * bool(title),
        description,
    )
    axes = figure.subplots()
    half_width, half_height = (edge / (edge + _GAP) / 2 for edge in (width, height))
    extent = (-half_width, num_columns - 1 + half_width, num_rows - 1 + half_height, -half_height)
    axes.imshow(_joined(tiles), extent=extent, aspect=(height + _GAP) / (width + _GAP))
    _outline(axes, num_rows, num_columns, half_height, half_width)
    axes.set_xticks(range(num_columns), [shortened(name) for name in column_titles])
    axes.set_yticks(range(num_rows), names)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    if title:
        figure.suptitle(printable(title), fontsize=11, x=0.01, ha="left")
    return figure, axes


def _outline(axes: Axes, num_rows: int, num_columns: int, half_height: float, half_width: float) -> None:
    """So that a black tile has an end on a black page: all in one path, faint."""
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1), (np.nan, np.nan)]) * (half_width, half_height)
    middles = np.stack(np.meshgrid(range(num_columns), range(num_rows)), -1).reshape(-1, 1, 2)
    axes.plot(*(middles + corners).reshape(-1, 2).T, color=INK, alpha=0.3, linewidth=0.6)


def enlarged(grid: np.ndarray, height: int, width: int) -> np.ndarray:
    """A grid [H, W, …] by blocks, at this size: every pixel has the value of the cell it lies in, and no other."""
    rows, columns = (np.arange(size) * cells // size for size, cells in zip((height, width), grid.shape, strict=False))
    return grid[rows][:, columns]


def _joined(tiles: np.ndarray) -> np.ndarray:
    """One picture RGBA of them all."""
    num_rows, num_columns, height, width = tiles.shape[:4]
    joined = np.zeros((num_rows, height + _GAP, num_columns, width + _GAP, 4), np.uint8)
    joined[:, :height, :, :width, :3] = tiles.transpose(0, 2, 1, 3, 4)
    joined[:, :height, :, :width, 3] = 255
    return joined.reshape(num_rows * (height + _GAP), -1, 4)[:-_GAP, :-_GAP]
