"""Every mode, depth and orientation becomes upright RGB; every broken file a sentence."""

import io
import struct
import threading
import warnings
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from spikformer.data.images import picture, read_picture

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


def assert_shows(pixels: np.ndarray, expected: np.ndarray, tolerance: float = 0) -> None:
    """Same picture [3, H, W] as an image [H, W, 3] or [H, W], up to what a lossy format changes."""
    expected = np.broadcast_to(expected[..., None], (*expected.shape, 3)) if expected.ndim == 2 else expected
    assert pixels.dtype == np.uint8
    assert pixels.shape == expected.transpose(2, 0, 1).shape
    assert pixels.flags.c_contiguous
    assert np.abs(pixels.transpose(1, 2, 0).astype(int) - expected).mean() <= tolerance


PLAIN = [
    (mode, ending) for mode in ("1", "L", "P", "RGB") for ending in ("png", "bmp", "gif", "tif", "webp", "jpg", "ppm")
]
NO_SUCH_FILE = {("P", "jpg"), ("P", "ppm"), ("RGB", "gif")}


@pytest.mark.parametrize(("mode", "ending"), [case for case in PLAIN if case not in NO_SUCH_FILE])
def test_plain_modes_in_every_format(mode: str, ending: str, tmp_path: Path) -> None:
    source = image(mode)
    options = {"webp": {"lossless": True}, "jpg": {"quality": 95}}.get(ending, {})
    path = saved(source, tmp_path / f"picture.{ending}", **options)
    lossy = {"jpg": 25 if mode == "1" else 3}.get(ending, 0)
    assert_shows(read_picture(path), np.asarray(source.convert("RGB")), lossy)


def test_cmyk(tmp_path: Path) -> None:
    assert_shows(read_picture(saved(image("CMYK"), tmp_path / "picture.tif")), scene(), 1)


def test_photoshops_inverted_ink_is_not_a_negative(tmp_path: Path) -> None:
    path = saved(image("CMYK"), tmp_path / "picture.jpg", quality=95)
    assert b"Adobe" in path.read_bytes()  # the marker that says so
    assert_shows(read_picture(path), scene(), 5)


@pytest.mark.parametrize("ending", ["png", "tif", "pgm"])
def test_sixteen_bits_of_gray_keep_their_range(ending: str, tmp_path: Path) -> None:
    values = np.linspace(0, 65535, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint16)
    path = saved(Image.fromarray(values), tmp_path / f"picture.{ending}")
    assert_shows(read_picture(path), np.rint(values / 257).astype(np.uint8))


def test_sixteen_bits_of_colour(tmp_path: Path) -> None:
    pixels = scene().astype(">u2") * 257
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    path = tmp_path / "picture.png"
    path.write_bytes(png(struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, 2, 0, 0, 0), rows))
    assert_shows(read_picture(path), scene())


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


@pytest.mark.parametrize("mode", ["I", "F"])
def test_numbers_without_a_known_white_are_refused(mode: str, tmp_path: Path) -> None:
    values = np.full((HEIGHT, WIDTH), 1_000_000, np.int32 if mode == "I" else np.float32)
    path = saved(Image.fromarray(values), tmp_path / "picture.tif")
    with pytest.raises(ValueError, match=r"picture.tif cannot be read: it is gray with 32 bits and no known white"):
        read_picture(path)


@pytest.mark.parametrize(("mode", "ending"), [("RGBA", "png"), ("LA", "png"), ("RGBA", "webp"), ("RGBA", "tif")])
def test_behind_a_transparent_picture_is_a_white_page(mode: str, ending: str, tmp_path: Path) -> None:
    source = image(mode)
    alpha = np.full((HEIGHT, WIDTH), 255, np.uint8)
    alpha[:, : WIDTH // 2], alpha[: HEIGHT // 2, : WIDTH // 2] = 0, 128
    source.putalpha(Image.fromarray(alpha))
    path = saved(source, tmp_path / f"picture.{ending}", **({"lossless": True} if ending == "webp" else {}))
    opaque = np.asarray(image("L" if mode == "LA" else "RGB").convert("RGB")).astype(float)
    weight = alpha[..., None] / 255
    expected = opaque * weight + 255 * (1 - weight)
    assert_shows(read_picture(path), expected, 1)
    assert (read_picture(path)[:, HEIGHT // 2 :, : WIDTH // 2] == 255).all()


@pytest.mark.parametrize("transparency", [0, bytes([0, 255])], ids=["index", "table"])
@pytest.mark.parametrize("ending", ["png", "gif"])
def test_a_palette_with_transparency(transparency, ending: str, tmp_path: Path) -> None:
    if ending == "gif" and isinstance(transparency, bytes):
        transparency = 0
    source = Image.fromarray((np.arange(HEIGHT * WIDTH) % 2).reshape(HEIGHT, WIDTH).astype(np.uint8), "P")
    source.putpalette([10, 20, 30, 40, 50, 60])
    pixels = read_picture(saved(source, tmp_path / f"picture.{ending}", transparency=transparency))
    assert (pixels[:, 0, 0] == 255).all()
    assert pixels[:, 0, 1].tolist() == [40, 50, 60]


def test_one_colour_named_as_transparent(tmp_path: Path) -> None:
    source = Image.new("RGB", (4, 4), (1, 2, 3))
    source.putpixel((0, 0), (9, 9, 9))
    pixels = read_picture(saved(source, tmp_path / "picture.png", transparency=(1, 2, 3)))
    assert pixels[:, 0, 0].tolist() == [9, 9, 9]
    assert (pixels[:, 1] == 255).all()


# What a camera stores when held in each of the eight ways, so that turning it back gives the scene.
STORED = {
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.transpose(1, 0, 2),
    6: lambda x: np.rot90(x, 1),
    7: lambda x: x[::-1, ::-1].transpose(1, 0, 2),
    8: lambda x: np.rot90(x, -1),
}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "webp", "tif"])
@pytest.mark.parametrize("size_hint", [None, (HEIGHT, WIDTH)])
def test_every_orientation_is_turned_upright(orientation: int, ending: str, size_hint, tmp_path: Path) -> None:
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](scene())))
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"jpg": {"quality": 95}, "webp": {"lossless": True}}.get(ending, {})
    path = saved(stored, tmp_path / f"picture.{ending}", exif=exif, **options)
    assert_shows(read_picture(path, size_hint), scene(), 4 if ending == "jpg" else 0)


@pytest.mark.parametrize(
    "exif", [b"Exif\0\0garbage", b"Exif\0\0II*\0\x08\0\0\0\xff\xff", b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12"]
)
def test_a_damaged_note_on_orientation_costs_only_the_note(exif: bytes, tmp_path: Path) -> None:
    assert_shows(read_picture(saved(image(), tmp_path / "picture.jpg", exif=exif, quality=95)), scene(), 4)


def test_an_unknown_orientation_is_none(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 9
    assert_shows(read_picture(saved(image(), tmp_path / "picture.jpg", exif=exif, quality=95)), scene(), 4)


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize(
    ("size_hint", "shape"),
    [
        (None, (400, 600)),
        ((400, 600), (400, 600)),
        ((201, 300), (400, 600)),
        ((200, 300), (200, 300)),
        ((99, 10), (100, 150)),
        ((1, 1), (50, 75)),
        ((1000, 1), (400, 600)),
    ],
)
def test_a_hint_saves_work_and_is_never_undercut(size_hint, shape, orientation: int, tmp_path: Path) -> None:
    large = np.asarray(image().resize((600, 400), Image.Resampling.BICUBIC))
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](large)))
    path = saved(stored, tmp_path / "picture.jpg", exif=exif, quality=95)
    pixels = read_picture(path, size_hint)
    assert pixels.shape[1:] == shape
    assert_shows(pixels, np.asarray(Image.fromarray(large).resize(shape[::-1], Image.Resampling.BOX)), 3)


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_a_hint_works_in_every_jpeg_mode_and_changes_no_png(mode: str, tmp_path: Path) -> None:
    large = image(mode).resize((WIDTH * 8, HEIGHT * 8))
    assert read_picture(saved(large, tmp_path / "picture.jpg"), (HEIGHT, WIDTH)).shape == (3, HEIGHT, WIDTH)
    png_path = saved(large.convert("RGB"), tmp_path / "picture.png")
    assert read_picture(png_path, (HEIGHT, WIDTH)).shape == (3, HEIGHT * 8, WIDTH * 8)


@pytest.mark.parametrize("size_hint", [(0, 4), (4, -1), (4,), (1, 2, 3)])
def test_a_wrong_hint_is_refused(size_hint, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"size_hint must be \(height, width\), each at least 1, got"):
        read_picture(saved(image(), tmp_path / "picture.jpg"), size_hint)


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
def test_a_truncated_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "photo"
    for part in (0.8, 0.5, 0.1):
        path.write_bytes(FILES[kind][: int(len(FILES[kind]) * part)])
        with pytest.raises(ValueError, match=r"photo cannot be read: .+\.$"):
            read_picture(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"hello, I am a text", "it is none of JPEG, PNG, WEBP, BMP, GIF, TIFF, PPM"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "it is none of"),  # would start Ghostscript
        (FILES["png"][:60] + bytes(40) + FILES["png"][100:], "."),
    ],
)
def test_a_broken_file_is_refused_with_the_reason(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"photo\.jpg cannot be read: {reason}") as caught:
        read_picture(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_picture(tmp_path / "none.jpg")


@pytest.mark.parametrize("side", [9500, 60000])  # where Pillow warns, and where it raises
def test_a_bomb_is_refused_before_it_goes_off(side: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png(struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0), bytes(1000)))
    with pytest.raises(ValueError, match=r"bomb.png says that it has more than 89478485 pixels; it was not decoded"):
        read_picture(path)


def test_the_bound_is_ours_even_if_someone_lifts_pillows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    monkeypatch.setattr(picture, "MAX_PIXELS", HEIGHT * WIDTH - 1)
    with pytest.raises(ValueError, match="more than 959 pixels"):
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
def test_mutated_files_are_refused_or_read(scratch: Path, data: st.DataObject) -> None:
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
def test_mutated_png_chunks_with_right_checksums_are_refused_or_read(scratch: Path, data: st.DataObject) -> None:
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
