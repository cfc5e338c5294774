"""Every broken picture gets an error message, and harms nothing else."""

import io
import struct
import threading
import warnings
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.data.images.drawn import HEIGHT, WIDTH, image, png, saved, scene
from tests.mistakes import file_error, mistake

from spikformer.data.images import picture
from spikformer.data.images.picture import read_picture
from spikformer.errors import FileError


def encoded(kind: str, **options) -> bytes:
    stream = io.BytesIO()
    image().save(stream, kind, **options)
    return stream.getvalue()


FILES = {
    "jpg": encoded("JPEG"),
    "progressive": encoded(
        "JPEG", progressive=True, exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    ),
    "png": encoded("PNG"),
    "gif": encoded("GIF"),
    "bmp": encoded("BMP"),
    "webp": encoded("WEBP"),
    "ppm": encoded("PPM"),
    "tif": encoded("TIFF"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_truncated_file_is_rejected(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "photo"
    for part in (0.8, 0.5, 0.1):
        path.write_bytes(FILES[kind][: int(len(FILES[kind]) * part)])
        with mistake(FileError, path=path):
            read_picture(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"hello, I am a text", "foreign"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "foreign"),  # would start Ghostscript
        (FILES["png"][:60] + bytes(40) + FILES["png"][100:], "damaged"),
    ],
)
def test_a_broken_file_is_rejected_with_the_reason(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    with file_error(path, reason):
        read_picture(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with mistake(FileNotFoundError, tmp_path / "none.jpg"):
        read_picture(tmp_path / "none.jpg")


@pytest.mark.parametrize("side", [5000, 9500, 60000])  # where we mind, where Pillow warns, and where it raises
def test_a_bomb_is_rejected_before_it_goes_off(side: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png(struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0), bytes(1000)))
    with file_error(path, "too_large"):
        read_picture(path)


def test_the_bound_is_ours_even_if_someone_lifts_pillows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    monkeypatch.setattr(picture, "MAX_PIXELS", HEIGHT * WIDTH - 1)
    with file_error(tmp_path / "picture.png", "too_large", 959):
        read_picture(saved(image(), tmp_path / "picture.png"))


def test_threads_leave_the_warning_filters_as_they_were(tmp_path: Path) -> None:
    path = saved(image(), tmp_path / "picture.jpg")
    before = list(warnings.filters)
    threads = [threading.Thread(target=lambda: [read_picture(path) for _ in range(30)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "picture"


@given(st.data())
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mutated_files_are_rejected_or_read(scratch: Path, data: st.DataObject) -> None:
    content = bytearray(FILES[data.draw(st.sampled_from(sorted(FILES)))])
    early = min(len(content), 200)  # headers are at the front, and most of what can go wrong is in them
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, early - 1) | st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255) | st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    scratch.write_bytes(content)
    with suppress(ValueError):
        assert read_picture(scratch, data.draw(st.none() | st.just((8, 8)))).shape[0] == 3


@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mutated_png_chunks_with_right_checksums_are_rejected_or_read(scratch: Path, data: st.DataObject) -> None:
    """A checksum hides most mutations from the decoder; repaired, they reach it."""
    header = bytearray(struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0))
    header[data.draw(st.integers(0, 12))] = data.draw(st.integers(0, 17))
    kind = data.draw(st.sampled_from([b"PLTE", b"tRNS", b"eXIf", b"iCCP", b"gAMA", b"acTL", b"fcTL", b"zTXt", b"cHRM"]))
    body = kind + data.draw(st.binary(max_size=40))
    extra = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(b"\0" + row.tobytes() for row in scene())
    scratch.write_bytes(png(bytes(header), rows, extra))
    with suppress(ValueError):
        assert read_picture(scratch).shape[0] == 3
