"""Pictures in rows and columns: images and frames of events as tiles of one size, laid out with titles.

Gaps between tiles are clear, so that a mosaic suits any page. Events and spikes are light on a dark of their own.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spikformer.errors import FieldError
from spikformer.visualise.style import INK, PIXELS_PER_INCH, drawable, house_style, new_figure, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Colour = tuple[int, int, int]

# Okabe and Ito's orange and sky blue: distinct for colour-blind readers, and about equally light on black.
ON_COLOUR: Colour = (230, 159, 0)
OFF_COLOUR: Colour = (86, 180, 233)
# Nothing fired: the tile brings its own dark, whatever page it lies on.
NO_EVENT_COLOUR: Colour = (20, 22, 26)


def image_tile(image: np.ndarray, side: int) -> np.ndarray:
    """An image uint8 [C, H, W], gray or RGB, as a tile of `side` pixels, see `tile`."""
    if image.ndim != 3 or image.shape[0] not in (1, 3) or image.size == 0 or image.dtype != np.uint8:
        raise FieldError("image", f"An image is uint8 [1 or 3, H, W], got {image.dtype} {list(image.shape)}.")
    return tile(sample_picture(image), side)


def event_tile(frame: np.ndarray, side: int, brightest: float) -> np.ndarray:
    """Counts [2, H, W] of OFF and ON events as a tile of `side` pixels, see `event_picture` and `tile`."""
    return tile(event_picture(frame, brightest), side)


def tile(pixels: np.ndarray, side: int) -> np.ndarray:
    """Pixels uint8 [H, W, RGB] in the middle of a square uint8 [side, side, RGBA], which is clear around them."""
    if side < 1:
        raise FieldError("side", f"side must be at least 1 pixel, got {side}.")
    longest = max(pixels.shape[:2])
    # A small picture by an integer factor, so that its pixels stay sharp and alike; the rest of the square is a rim.
    picture = fitted(pixels, side // longest * longest if longest <= side else side)
    square = np.zeros((side, side, 4), np.uint8)
    top, left = ((side - edge) // 2 for edge in picture.shape[:2])
    square[top : top + picture.shape[0], left : left + picture.shape[1], :3] = picture
    square[top : top + picture.shape[0], left : left + picture.shape[1], 3] = 255
    return square


def fitted(pixels: np.ndarray, longest: int) -> np.ndarray:
    """Pixels uint8 [H, W, RGB] with a longer edge of `longest`: a small picture by blocks, a large one smoothly."""
    height, width = pixels.shape[:2]
    if max(height, width) <= longest:
        scale = longest / max(height, width)
        return enlarged(pixels, round(height * scale), round(width * scale))
    from PIL import Image

    shrunk = [max(1, round(edge * longest / max(height, width))) for edge in (width, height)]
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(picture.resize((shrunk[0], shrunk[1]), Image.Resampling.LANCZOS))


def enlarged(grid: np.ndarray, height: int, width: int) -> np.ndarray:
    """A grid [H, W, …] by blocks, at this size: every pixel has the value of the cell it lies in, and no other."""
    rows, columns = (np.arange(size) * cells // size for size, cells in zip((height, width), grid.shape, strict=False))
    return grid[rows][:, columns]


def event_picture(frame: np.ndarray, brightest: float) -> np.ndarray:
    """Counts [2, H, W] of OFF and ON events as light on black, uint8 [H, W, RGB], full from `brightest` on.

    Both are added where both fire. Light grows with the root of the count: a lone event stays visible beside an edge
    that fires ten times as often.
    """
    if frame.ndim != 3 or frame.shape[0] != 2 or frame.size == 0:
        raise FieldError("frame", f"A frame of events is [2, H, W], got {list(frame.shape)}.")
    if not (frame >= 0).all():
        raise FieldError("frame", "A frame of events holds counts, got negative numbers or NaN.")
    if not 0 < brightest < np.inf:
        raise FieldError("brightest", f"brightest must be a count above 0, got {brightest}.")
    return lit(frame, brightest, (OFF_COLOUR, ON_COLOUR))


def lit(counts: np.ndarray, brightest: float, colours: tuple[Colour, ...]) -> np.ndarray:
    """Counts [C, H, W] as light of a colour for each C on black, uint8 [H, W, RGB]."""
    strength = np.sqrt(np.minimum(counts / brightest, 1))
    dark = np.array(NO_EVENT_COLOUR)
    light = np.stack(colours) - dark  # [C, RGB]
    return np.clip((dark + np.einsum("phw,pc->hwc", strength, light)).round(), 0, 255).astype(np.uint8)


def sample_picture(sample: np.ndarray) -> np.ndarray:
    """A sample as uint8 [H, W, RGB]: an image [C, H, W], or of frames [T, 2, H, W] all events at once."""
    if sample.ndim == 4:
        counts = sample.sum(0)  # [2, H, W]
        return event_picture(counts, brightest_count(counts))
    channels = sample if len(sample) == 3 else sample[:1]
    return np.broadcast_to(channels, (3, *channels.shape[1:])).transpose(1, 2, 0)


def brightest_count(frames: np.ndarray) -> float:
    """The count to show at full light in all of these frames: the 99th percentile of those above 0.

    One for all frames of a row makes them comparable, and one hot pixel does not darken the rest.
    """
    counts = frames[frames > 0]
    return float(np.percentile(counts, 99)) if counts.size else 1.0


def tile_side(height: int, width: int, about: int = 192) -> int:
    """A side near `about` that an image of this size fills without a rim: a multiple, or less than the image."""
    longest = max(height, width)
    return longest * round(about / longest) if longest <= about else about


def _legend() -> tuple[tuple[str, Colour], ...]:
    """What a pixel at full light looks like."""
    counts = {"ON": (0, 1), "OFF": (1, 0), "both": (1, 1)}
    pixels = {name: event_picture(np.reshape(pair, (2, 1, 1)), 1)[0, 0] for name, pair in counts.items()}
    return tuple((name, (int(red), int(green), int(blue))) for name, (red, green, blue) in pixels.items())


EVENT_LEGEND = _legend()


_GAP = 10  # pixels
_MARGIN, _LINE = 0.14, 0.24  # inches
_LETTER = 0.095  # inches of an average letter of a title
# In pixels: a mosaic that would be wider has more of them to the inch, but not so many that titles meet.
_WIDEST, _SMALLEST = 2000, 0.4


@house_style()
def mosaic(
    tiles: Sequence[Sequence[np.ndarray]],
    row_titles: Sequence[str],
    column_titles: Sequence[str] = (),
    title: str = "",
    description: str = "",
    legend: Sequence[tuple[str, Colour]] = (),
) -> tuple[Figure, Axes]:
    """Rows of tiles uint8 [H, W, RGB or RGBA]; the middle of the first is at (0, 0), of its neighbours at 1.

    Rows may have fewer tiles than others, and columns no titles. In a PNG every pixel of a tile is one. All tiles are
    one picture on one pair of axes: laying out a hundred axes takes seconds.
    """
    num_rows, num_columns, height, width = _check(tiles, row_titles, column_titles)
    scale = min(1, max(_WIDEST / (num_columns * (width + _GAP)), _SMALLEST))
    figure = new_figure(1, 1, description, pixels_per_inch=round(PIXELS_PER_INCH / scale))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    half_width, half_height = (edge / (edge + _GAP) / 2 for edge in (width, height))
    extent = (-half_width, num_columns - 1 + half_width, num_rows - 1 + half_height, -half_height)
    axes.imshow(_joined(tiles, num_columns), extent=extent, aspect="auto")
    _outline(axes, [len(row) for row in tiles], half_height, half_width)
    axes.set_xticks(range(len(column_titles)), [shortened(name) for name in column_titles])
    axes.set_yticks(range(num_rows), [textwrap.fill(shortened(name), 26) for name in row_titles])
    axes.tick_params(length=0, top=True, labeltop=bool(column_titles), bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    if legend:
        _add_legend(figure, legend)
    _place(figure, axes, num_columns * (width + _GAP) - _GAP, num_rows * (height + _GAP) - _GAP, drawable(title))
    return figure, axes


def _check(
    tiles: Sequence[Sequence[np.ndarray]], row_titles: Sequence[str], column_titles: Sequence[str]
) -> tuple[int, int, int, int]:
    """Rows, columns, and the height and width of a tile."""
    if not tiles or not all(map(len, tiles)):
        raise FieldError(
            "tiles", f"A mosaic needs a tile in every row, got rows of {[len(row) for row in tiles]} tiles."
        )
    num_rows, num_columns = len(tiles), max(map(len, tiles))
    if len(row_titles) != num_rows or len(column_titles) not in (0, num_columns):
        raise FieldError(
            "titles",
            f"{num_rows} rows and {num_columns} columns of tiles need as many titles, "
            f"got {len(row_titles)} and {len(column_titles)}.",
        )
    sizes = {tile.shape[:2] for row in tiles for tile in row}
    if len(sizes) > 1:
        raise FieldError("tiles", f"The tiles of a mosaic have one size, got {sorted(sizes)[:3]}.")
    ((height, width),) = sizes
    return num_rows, num_columns, height, width


def _place(figure: Figure, axes: Axes, width: int, height: int, title: str) -> None:
    """Make the figure as large as tiles of this many pixels, and all that is written around them, need."""
    pixels_per_inch = round(figure.get_dpi())
    margin, line = math.ceil(_MARGIN * pixels_per_inch), math.ceil(_LINE * pixels_per_inch)
    inside, outside = axes.get_window_extent(), axes.get_tightbbox(for_layout_only=True)
    assert outside is not None
    left = math.ceil(inside.x0 - outside.x0) + margin
    top = math.ceil(outside.y1 - inside.y1) + margin
    total_width = max(left + width + margin, 3 * pixels_per_inch)
    lines = textwrap.wrap(title, max(10, int(total_width / pixels_per_inch / _LETTER)))
    if lines:
        top += len(lines) * line + margin // 2
    bottom = margin + (line + margin if figure.legends else 0)
    total_height = top + height + bottom
    # A hundredth of a pixel more, because Agg cuts fractions off and rounding must not cost a whole one.
    figure.set_size_inches((total_width + 0.01) / pixels_per_inch, (total_height + 0.01) / pixels_per_inch)
    axes.set_position((left / total_width, bottom / total_height, width / total_width, height / total_height))
    if lines:
        y = 1 - margin / total_height
        figure.suptitle("\n".join(lines), fontsize=12, x=margin / total_width, y=y, ha="left", va="top")


def _add_legend(figure: Figure, legend: Sequence[tuple[str, Colour]]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=f"#{bytes(colour).hex()}", edgecolor=INK, label=name) for name, colour in legend]
    figure.legend(handles=patches, loc="lower right", ncols=len(patches), handlelength=1.0, borderaxespad=0.2)


def _outline(axes: Axes, lengths: Sequence[int], half_height: float, half_width: float) -> None:
    """So that a black tile has an end on a black page, and a white one on white: all in one path, faint."""
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1), (np.nan, np.nan)]) * (half_width, half_height)
    middles = np.array([(column, row) for row, length in enumerate(lengths) for column in range(length)])
    axes.plot(*(middles[:, None] + corners).reshape(-1, 2).T, color=INK, alpha=0.3, linewidth=0.6, clip_on=False)


def _joined(tiles: Sequence[Sequence[np.ndarray]], num_columns: int) -> np.ndarray:
    """One picture RGBA of them all."""
    height, width = tiles[0][0].shape[:2]
    joined = np.zeros((len(tiles), height + _GAP, num_columns, width + _GAP, 4), np.uint8)
    for row, of_row in enumerate(tiles):
        for column, tile in enumerate(of_row):
            joined[row, :height, column, :width, 3] = 255
            joined[row, :height, column, :width, : tile.shape[2]] = tile
    return joined.reshape(len(tiles) * (height + _GAP), -1, 4)[:-_GAP, :-_GAP]
