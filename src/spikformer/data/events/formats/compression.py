"""LZ4 and Zstandard frames, by the libraries of that name, which are only needed for the files that use them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from spikformer.data.compressed import LARGEST_RATIO

Decompress = Callable[[bytes], bytes]


def lz4_frames(path: Path) -> Decompress:
    """A function that undoes one LZ4 frame, and raises ValueError for one that is damaged."""
    library = _import("lz4.frame", "lz4", "LZ4", path)

    def decompress(frame: bytes) -> bytes:
        try:
            # 0: the frame does not say its size.
            limit = _limit(library.get_frame_info(frame)["content_size"] or None, frame)
            decompressor = library.LZ4FrameDecompressor()
            content = decompressor.decompress(frame, max_length=limit + 1)
        except (RuntimeError, EOFError) as error:
            raise ValueError(str(error)) from None
        if not decompressor.eof:
            raise ValueError(f"a frame of {len(frame)} bytes is cut off, or holds more than {limit}")
        return content

    return decompress


def zstd_frames(path: Path) -> Decompress:
    """A function that undoes one Zstandard frame, and raises ValueError for one that is damaged."""
    library = _import("zstandard", "zstandard", "Zstandard", path)

    def decompress(frame: bytes) -> bytes:
        try:
            stated = library.frame_content_size(frame)  # -1: the frame does not say its size
            limit = _limit(None if stated < 0 else stated, frame)
            return library.ZstdDecompressor().decompress(frame, max_output_size=limit)
        except library.ZstdError as error:
            raise ValueError(str(error)) from None

    return decompress


def _limit(stated: int | None, frame: bytes) -> int:
    """How many bytes a frame may unpack to; the libraries allocate that many at once."""
    most = LARGEST_RATIO * len(frame)
    if stated is not None and stated > most:
        raise ValueError(f"a frame of {len(frame)} bytes claims to hold {stated}")
    return most if stated is None else stated


def _import(module: str, package: str, method: str, path: Path) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise ValueError(
            f"{path} is compressed with {method}, and the library for it is missing: pip install {package}."
        ) from None
