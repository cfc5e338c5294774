"""Pictures on disk, in the format that their names say."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from spikformer.disk import write_atomically

# Thin letters and single pixels do not survive coarse colours: no subsampling in a JPEG, no loss in a WebP.
_FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"format": "PNG"},
    ".jpg": {"format": "JPEG", "quality": 92, "subsampling": 0},
    ".jpeg": {"format": "JPEG", "quality": 92, "subsampling": 0},
    ".webp": {"format": "WEBP", "lossless": True},
}


def save_picture(image: Image.Image, path: Path) -> None:
    """Write the picture in the format that its ending says; a file there is replaced only by a whole one."""
    check_picture_path(path)
    write_atomically(path, _encoded(image, path, _FORMATS[path.suffix.lower()]))


def check_picture_path(path: Path) -> None:
    """Refuse a name or place that `save_picture` would refuse, before the picture is made."""
    if path.suffix.lower() not in _FORMATS:
        raise ValueError(f"{path} should end in one of {', '.join(_FORMATS)}, to say the format of the picture.")
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into; create it first.")


def _encoded(image: Image.Image, path: Path, options: dict[str, Any]) -> bytes:
    content = BytesIO()
    try:
        image.convert("RGB").save(content, **options)
    except (OSError, ValueError) as error:  # WebP ends at 16383 pixels, JPEG at 65535
        width, height = image.size
        raise ValueError(
            f"{path.suffix} cannot hold a picture of {width}×{height} pixels ({error}); try .png."
        ) from None
    return content.getvalue()
