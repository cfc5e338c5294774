"""Tiles: one image or one frame of events as a square picture, to be laid out on a sheet."""

from __future__ import annotations

import numpy as np
from PIL import Image

Colour = tuple[int, int, int]

# Not quite white, so that a white photograph still has an edge.
BACKGROUND: Colour = (246, 246, 244)
# Okabe and Ito's orange and sky blue: told apart by colour-blind eyes, and about equally light on black.
ON_COLOUR: Colour = (230, 159, 0)
OFF_COLOUR: Colour = (86, 180, 233)
# Nothing fired: the tile brings its own dark, whatever page it lies on.
NO_EVENT_COLOUR: Colour = (20, 22, 26)


def image_tile(image: np.ndarray, side: int) -> Image.Image:
    """An image uint8 [C, H, W], gray or RGB, in a square of `side` pixels, its proportions kept.

    A small one is enlarged by a whole factor, so that its pixels stay sharp and alike; a large one shrinks smoothly.
    """
    if image.ndim != 3 or image.shape[0] not in (1, 3) or image.size == 0 or image.dtype != np.uint8:
        raise ValueError(f"An image is uint8 [1 or 3, H, W], got {image.dtype} {list(image.shape)}.")
    pixels = np.broadcast_to(image, (3, *image.shape[1:]))
    return _fitted(pixels.transpose(1, 2, 0), side)


def event_tile(frame: np.ndarray, side: int, brightest: float) -> Image.Image:
    """Counts [2, H, W] of OFF and ON events as light on black, added where both fire, full from `brightest` on.

    Light grows with the root of the count: a lone event stays visible beside an edge that fires ten times as often.
    """
    if frame.ndim != 3 or frame.shape[0] != 2 or frame.size == 0:
        raise ValueError(f"A frame of events is [2, H, W], got {list(frame.shape)}.")
    if not (frame >= 0).all():
        raise ValueError("A frame of events holds counts, got negative numbers or NaN.")
    if not 0 < brightest < np.inf:
        raise ValueError(f"brightest must be a count above 0, got {brightest}.")
    strength = np.sqrt(np.minimum(frame / brightest, 1))  # [2, H, W]
    dark = np.array(NO_EVENT_COLOUR)
    light = np.stack([OFF_COLOUR, ON_COLOUR]) - dark  # [2, RGB]
    colours = dark + np.einsum("phw,pc->hwc", strength, light)
    return _fitted(np.clip(colours.round(), 0, 255).astype(np.uint8), side)


def sample_picture(sample: np.ndarray) -> np.ndarray:
    """A sample as uint8 [H, W, RGB]: an image [C, H, W], or of frames [T, 2, H, W] all events at once."""
    if sample.ndim == 4:
        counts = sample.sum(0)  # [2, H, W]
        height, width = counts.shape[-2:]
        side = max(height, width)
        tile = np.asarray(event_tile(counts, side, brightest_count(counts)))
        top, left = (side - height) // 2, (side - width) // 2
        return tile[top : top + height, left : left + width]
    channels = sample if len(sample) == 3 else sample[:1]
    return np.broadcast_to(channels, (3, *channels.shape[1:])).transpose(1, 2, 0)


def brightest_count(frames: np.ndarray) -> float:
    """The count to show at full light in all of these frames: the 99th percentile of those above 0.

    One for a whole row makes its frames comparable, and one hot pixel does not darken the rest.
    """
    counts = frames[frames > 0]
    return float(np.percentile(counts, 99)) if counts.size else 1.0


def tile_side(height: int, width: int, about: int = 192) -> int:
    """A side near `about` that an image of this size fills without a rim: a whole multiple, or less than the image."""
    longest = max(height, width)
    return longest * round(about / longest) if longest <= about else about


def _legend() -> tuple[tuple[str, Colour], ...]:
    """What a pixel at full light looks like, taken from a tile itself."""
    pixels = {"ON": (0, 1), "OFF": (1, 0), "both": (1, 1)}
    tiles = {name: np.asarray(event_tile(np.reshape(counts, (2, 1, 1)), 1, 1)) for name, counts in pixels.items()}
    return tuple((name, (int(rgb[0]), int(rgb[1]), int(rgb[2]))) for name, ((rgb,),) in tiles.items())


def _fitted(pixels: np.ndarray, side: int) -> Image.Image:
    """Pixels [H, W, RGB] in the middle of a square."""
    if side < 1:
        raise ValueError(f"side must be at least 1 pixel, got {side}.")
    height, width = pixels.shape[:2]
    longest = max(height, width)
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    if longest <= side:
        factor = side // longest
        picture = picture.resize((width * factor, height * factor), Image.Resampling.NEAREST)
    else:
        shrunk = [max(1, round(edge * side / longest)) for edge in (width, height)]
        picture = picture.resize((shrunk[0], shrunk[1]), Image.Resampling.LANCZOS)
    tile = Image.new("RGB", (side, side), BACKGROUND)
    tile.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return tile


EVENT_LEGEND = _legend()
