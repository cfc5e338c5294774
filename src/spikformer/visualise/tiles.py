"""Tiles: one image or one frame of events as pixels, to be laid out in a mosaic."""

from __future__ import annotations

import numpy as np

Colour = tuple[int, int, int]

# Okabe and Ito's orange and sky blue: told apart by colour-blind eyes, and about equally light on black.
ON_COLOUR: Colour = (230, 159, 0)
OFF_COLOUR: Colour = (86, 180, 233)
# Nothing fired: the tile brings its own dark, whatever page it lies on.
NO_EVENT_COLOUR: Colour = (20, 22, 26)


def image_tile(image: np.ndarray, side: int) -> np.ndarray:
    """An image uint8 [C, H, W], gray or RGB, as a tile of `side` pixels, see `tile`."""
    if image.ndim != 3 or image.shape[0] not in (1, 3) or image.size == 0 or image.dtype != np.uint8:
        raise ValueError(f"An image is uint8 [1 or 3, H, W], got {image.dtype} {list(image.shape)}.")
    return tile(sample_picture(image), side)


def event_tile(frame: np.ndarray, side: int, brightest: float) -> np.ndarray:
    """Counts [2, H, W] of OFF and ON events as a tile of `side` pixels, see `event_picture` and `tile`."""
    return tile(event_picture(frame, brightest), side)


def tile(pixels: np.ndarray, side: int) -> np.ndarray:
    """Pixels uint8 [H, W, RGB] in the middle of a square uint8 [side, side, RGBA], which is clear around them."""
    if side < 1:
        raise ValueError(f"side must be at least 1 pixel, got {side}.")
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
        raise ValueError(f"A frame of events is [2, H, W], got {list(frame.shape)}.")
    if not (frame >= 0).all():
        raise ValueError("A frame of events holds counts, got negative numbers or NaN.")
    if not 0 < brightest < np.inf:
        raise ValueError(f"brightest must be a count above 0, got {brightest}.")
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
