"""From decoded pictures and recordings to samples: the arithmetic behind `Preprocessing`.

A picture is uint8 [C, H, W], a recording a list of events. Samples of pictures are bytes [C, h, w], those of
recordings are frames: counts of events [T, 2, h, w], OFF in channel 0 and ON in channel 1, as in the authors' code.
"""

from __future__ import annotations

from math import floor
from typing import Literal, NamedTuple, get_args

import numpy as np

from spikformer.errors import FieldError, FileError

Slicing = Literal["count", "time"]
Fit = Literal["resize", "crop"]
Resampling = Literal["bicubic", "bilinear", "nearest"]

_LONGEST = 32  # times the crop's own shape; no photograph is that long
_LUMA = np.array([299, 587, 114], np.int32)  # thousandths: integers give the same gray on every machine


class Recording(NamedTuple):
    """Events in the order of time. Arrays are of one length; `size` is the sensor's height and width."""

    time_us: np.ndarray  # int64, microseconds, never running backwards
    x: np.ndarray  # int16, column, 0 at the left
    y: np.ndarray  # int16, row, 0 at the top
    on: np.ndarray  # bool, True where it became brighter
    size: tuple[int, int]
    size_is_guessed: bool = False  # the file does not say it; a usual one that holds all events was taken


def swap_axes(recording: Recording) -> Recording:
    """Rows as columns: the picture mirrored at its diagonal."""
    height, width = recording.size
    return recording._replace(x=recording.y, y=recording.x, size=(width, height))


def with_sensor(recording: Recording, sensor: tuple[int, int], source: str) -> Recording:
    """A recording whose size was guessed, with the size of its set: recordings of one camera must not differ."""
    if not recording.size_is_guessed or recording.size == sensor:
        return recording
    rows, columns = int(recording.y.max()) + 1, int(recording.x.max()) + 1
    if rows > sensor[0] or columns > sensor[1]:
        raise FileError(
            source,
            f"does not say its sensor, and has events up to row {rows - 1} and column {columns - 1}, outside "
            f"the {sensor[0]}×{sensor[1]} of its set; give the right `sensor`.",
            "unfit",
        )
    return recording._replace(size=sensor, size_is_guessed=False)


def to_frames(
    recording: Recording,
    num_frames: int,
    *,
    slicing: Slicing = "count",
    size: tuple[int, int] | None = None,
    fit: Fit = "resize",
) -> np.ndarray:
    """Counts [T, 2, H, W] of slices with equal numbers of events, or of equal time, in the smallest integers.

    To another `size` than the sensor's, events are moved to the pixel that covers theirs (resize), or the middle of
    the sensor is kept (crop). Takes 40 bytes of memory for each event, and 9 for each count.
    """
    if num_frames < 1:
        raise FieldError("num_frames", f"num_frames must be at least 1, got {num_frames}.")
    if slicing not in get_args(Slicing) or fit not in get_args(Fit):
        raise FieldError(
            "slicing", f"slicing is 'count' or 'time' and fit 'resize' or 'crop', got {slicing!r} and {fit!r}."
        )
    height, width = size or recording.size
    x, y, inside = _place(recording, (height, width), fit)
    frame = _slice_by_count if slicing == "count" else _slice_by_time
    # One bin per frame, polarity and pixel; a single bincount adds them all.
    bins = ((frame(recording, num_frames) * 2 + recording.on) * height + y) * width + x
    counts = np.bincount(bins if inside is None else bins[inside], minlength=num_frames * 2 * height * width)
    kinds = (np.uint8, np.int16, np.int32, np.int64)  # a quarter of the bytes to keep, to move and to send
    smallest = next(kind for kind in kinds if counts.max() <= np.iinfo(kind).max)
    return counts.reshape(num_frames, 2, height, width).astype(smallest)


def _slice_by_count(recording: Recording, num_frames: int) -> np.ndarray:
    """Official: ⌊n/T⌋ events a slice; the last one takes what is left over."""
    count = len(recording.time_us)
    return np.minimum(np.arange(count) // max(count // num_frames, 1), num_frames - 1)


def _slice_by_time(recording: Recording, num_frames: int) -> np.ndarray:
    """⌊elapsed · T / duration⌋, where no product can overflow: slices start at ⌈k · duration / T⌉."""
    time_us = recording.time_us.astype(np.uint64)
    elapsed = time_us - time_us[0]  # right modulo 2⁶⁴, even where a difference of int64 is not
    duration = int(elapsed[-1]) + 1
    starts = np.array([-(-frame * duration // num_frames) for frame in range(num_frames)], np.uint64)
    return np.repeat(np.arange(num_frames), np.diff(np.searchsorted(elapsed, starts), append=len(elapsed)))


def _place(recording: Recording, size: tuple[int, int], fit: Fit) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Column and row of each event in a picture of that size, and which events lie in it (None: all)."""
    x, y = recording.x.astype(np.int64), recording.y.astype(np.int64)
    (height, width), (sensor_height, sensor_width) = size, recording.size
    if size == recording.size:
        return x, y, None
    if fit == "resize":
        return x * width // sensor_width, y * height // sensor_height, None
    if height > sensor_height or width > sensor_width:
        raise FieldError(
            "fit", f"Cannot crop a sensor of {sensor_height}×{sensor_width} to {height}×{width}; resize instead."
        )
    x, y = x - (sensor_width - width) // 2, y - (sensor_height - height) // 2
    return x, y, (x >= 0) & (x < width) & (y >= 0) & (y < height)


def evaluation_size(size: tuple[int, int], ratio: float) -> tuple[int, int]:
    """Height and width that a picture is resized to cover before the crop; also the size hint to read it with."""
    if not 0 < ratio <= 1:
        raise FieldError("ratio", f"ratio must be above 0 and at most 1, got {ratio!r}; 0.875 crops 224 out of 256.")
    if min(size) < 1:
        raise FieldError("size", f"size must be (height, width), each at least 1, got {size!r}.")
    height, width = size
    return floor(height / ratio), floor(width / ratio)


def evaluation_crop(
    image: np.ndarray, size: tuple[int, int], ratio: float, resampling: Resampling = "bicubic"
) -> np.ndarray:
    """uint8 [C, H, W] resized to just cover size / ratio, and of that the centre: [C, *size].

    To the bit what torchvision's Resize and CenterCrop make of a Pillow image. Takes 32 times size / ratio² of memory
    at most.
    """
    cover = evaluation_size(size, ratio)
    if ratio == 1 and image.shape[1:] == size:
        return image
    from PIL import Image  # arrays of the right size need no Pillow

    image = _shortened(image, cover)
    resized = _covering(image.shape[1:], cover)
    top, left = (round((whole - part) / 2) for whole, part in zip(resized, size, strict=True))
    method = Image.Resampling[resampling.upper()]
    # A plane at a time: Pillow's RGB has four bytes a pixel, and its planes would have to be woven and parted again.
    planes = (np.asarray(Image.fromarray(plane).resize(resized[::-1], method)) for plane in image)
    return np.stack([plane[top : top + size[0], left : left + size[1]].copy() for plane in planes])


def _covering(shape: tuple[int, ...], cover: tuple[int, int]) -> tuple[int, int]:
    """The side that needs the larger factor is met exactly, the other one overhangs."""
    rows, columns = shape
    if cover[0] * columns >= cover[1] * rows:
        return cover[0], cover[0] * columns // rows
    return cover[1] * rows // columns, cover[1]


def _shortened(image: np.ndarray, cover: tuple[int, int]) -> np.ndarray:
    """The middle of a ribbon: a picture of 1×100000 would become 256×25600000, to be cut away again."""
    rows, columns = image.shape[1:]
    above = max(0, rows - _LONGEST * (columns * cover[0] // cover[1] + 1)) // 2
    beside = max(0, columns - _LONGEST * (rows * cover[1] // cover[0] + 1)) // 2
    return image[:, above : rows - above, beside : columns - beside]  # as much on both sides: the middle stays


def with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """An image [C, H, W] in gray or in colour; any other number of channels must be the image's own."""
    if len(image) == channels:
        return image
    if (len(image), channels) == (3, 1):
        return ((np.tensordot(_LUMA, image, 1) + 500) // 1000).astype(np.uint8)[None]
    if (len(image), channels) == (1, 3):
        return np.repeat(image, 3, axis=0)
    raise FieldError("channels", f"Expected a picture of {channels} channels, got {len(image)}.")
