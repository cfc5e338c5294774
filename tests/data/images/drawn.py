"""Pictures that tests draw."""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 24, 40


def scene() -> np.ndarray:
    """[H, W, 3], smooth, and different in all four corners, so that no turn or flip goes unseen."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([x * 255 / (WIDTH - 1), y * 255 / (HEIGHT - 1), 255 - x * 255 / (WIDTH - 1)], -1).astype(np.uint8)


def image(mode: str = "RGB") -> Image.Image:
    return Image.fromarray(scene()).convert(mode)


def saved(image: Image.Image, path: Path, **options) -> Path:
    image.save(path, **options)
    return path


def png(header: bytes, rows: bytes, extra: bytes = b"") -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + extra
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
