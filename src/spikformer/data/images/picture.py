"""One image file, whatever its format and mode, as upright RGB."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from threading import Lock

import numpy as np
from PIL import Image, ImageFile

from spikformer.errors import FieldError, FileError, Reason, printable

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
MAX_PIXELS = 89_478_485  # Pillow's own bound: 256 MB of RGB
_SMALL_PIXELS = 1 << 24
_PIXELS_PER_BYTE = 1 << 10  # deflate's best; who packs better packs a blank page, or a bomb

# A closed list: Pillow knows dozens of old formats, and one that starts Ghostscript.
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")

_EXIF_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

_quiet = Lock()  # Python's warning filters belong to the process: two threads that change them leave them changed


def read_picture(path: str | os.PathLike[str], size_hint: tuple[int, int] | None = None) -> np.ndarray:
    """The picture as uint8 [3, H, W].

    With a size hint (height, width), a JPEG of at least twice that is decoded at 1/2, 1/4 or 1/8, which is faster and
    never smaller than the hint. Where a picture is transparent, the page behind it is white. JPEG has no checksum: a
    damaged one that still decodes to the end is not noticed.

    Takes at most 24 bytes of memory for each pixel. A file may state 16 Mi pixels, and 1,024 for each of its bytes, and
    MAX_PIXELS at most.
    """
    path = Path(path)
    if size_hint is not None and (len(size_hint) != 2 or min(size_hint) < 1):
        raise FieldError("size_hint", f"size_hint must be (height, width), each at least 1, got {size_hint!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with _open(path) as image:
            pixels = np.asarray(_upright(_to_rgb(_decode(image, size_hint)), _orientation(image)))
    except Image.DecompressionBombError:
        raise FileError(
            path,
            f"says that it has more than {_most_pixels(path)} pixels; it was not decoded, make it smaller first.",
            "too_large",
        ) from None
    except MemoryError:
        raise  # is not the file's fault
    except Exception as error:  # on damaged files Pillow raises nearly every kind there is
        problem, reason = _problem(error, path)
        raise FileError(path, f"cannot be read: {problem}.", reason) from None
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _open(path: Path) -> ImageFile.ImageFile:
    with _quiet, warnings.catch_warnings(action="ignore"):
        image = Image.open(path, formats=_FORMATS)
    if image.width * image.height > _most_pixels(path):
        image.close()
        raise Image.DecompressionBombError
    return image


def _most_pixels(path: Path) -> int:
    return min(MAX_PIXELS, _SMALL_PIXELS + _PIXELS_PER_BYTE * path.stat().st_size)


def _decode(image: ImageFile.ImageFile, size_hint: tuple[int, int] | None) -> ImageFile.ImageFile:
    if size_hint is not None:
        height, width = size_hint if _orientation(image) < 5 else size_hint[::-1]  # 5 to 8 lie on their side
        image.draft(None, (width, height))
    image.load()
    return image


def _orientation(image: ImageFile.ImageFile) -> int:
    """How the camera was held, by EXIF; a damaged note about it costs us the note, not the picture."""
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    try:
        with _quiet, warnings.catch_warnings(action="ignore"):
            return int(image.getexif().get(_EXIF_ORIENTATION, 1))
    except Exception:
        return 1


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    return image.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else image


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode[0] in "IF":
        return _to_eight_bits(image).convert("RGB")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        page = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(page, image).convert("RGB")
    return image.convert("RGB")


def _to_eight_bits(image: Image.Image) -> Image.Image:
    """16-bit gray, from 0 … 65535 to 0 … 255; Pillow's own conversion would clip nearly all of it to white."""
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > 0xFFFF:
        raise ValueError("it is gray with 32 bits and no known white, expected 8 or 16 bits")
    return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))


def _problem(error: Exception, path: Path) -> tuple[str, Reason]:
    if path.stat().st_size == 0:
        return "it is empty", "empty"
    if isinstance(error, Image.UnidentifiedImageError):
        return f"it is none of {', '.join(_FORMATS)}", "foreign"
    return printable(error, 200).rstrip(".") or type(error).__name__, "damaged"
