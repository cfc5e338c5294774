"""LZ4 and Zstandard frames, by the libraries of that name, which are only needed for the files that use them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Decompress = Callable[[bytes], bytes]

# LZ4's own limit. Zstandard could go further, events never do; a frame that claims more is damaged or a bomb.
_LARGEST_RATIO = 255


def lz4_frames(path: Path) -> Decompress:
    """A function that undoes one LZ4 frame, and raises ValueError for one that is damaged."""
    library = _import("lz4.frame", "lz4", "LZ4", path)

    def decompress(frame: bytes) -> bytes:
        try:
            _check_claim(library.get_frame_info(frame)["content_size"], frame)
            return library.decompress(frame)
        except RuntimeError as error:
            raise ValueError(str(error)) from None

    return decompress


def zstd_frames(path: Path) -> Decompress:
    """A function that undoes one Zstandard frame, and raises ValueError for one that is damaged."""
    library = _import("zstandard", "zstandard", "Zstandard", path)

    def decompress(frame: bytes) -> bytes:
        try:
            _check_claim(library.frame_content_size(frame), frame)
            return library.ZstdDecompressor().decompress(frame, max_output_size=_LARGEST_RATIO * len(frame))
        except library.ZstdError as error:
            raise ValueError(str(error)) from None

    return decompress


def _check_claim(content_bytes: int, frame: bytes) -> None:
    # The libraries allocate what a frame claims to hold before they look at it.
    if content_bytes > _LARGEST_RATIO * len(frame):
        raise ValueError(f"a frame of {len(frame)} bytes claims to hold {content_bytes}")


def _import(module: str, package: str, method: str, path: Path) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise ValueError(
            f"{path} is compressed with {method}, and the library for it is missing: pip install {package}."
        ) from None
