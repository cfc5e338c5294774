"""Every mode, depth and orientation becomes upright RGB."""

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.data.images.drawn import HEIGHT, WIDTH, image, png, saved, scene
from tests.limits import run_limited
from tests.mistakes import field_error, file_error

from spikformer.data.images.picture import read_picture


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


@pytest.mark.parametrize("mode", ["I", "F"])
def test_numbers_without_a_known_white_are_rejected(mode: str, tmp_path: Path) -> None:
    values = np.full((HEIGHT, WIDTH), 1_000_000, np.int32 if mode == "I" else np.float32)
    path = saved(Image.fromarray(values), tmp_path / "picture.tif")
    with file_error(path, "damaged", 32):
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
def test_a_wrong_hint_is_rejected(size_hint, tmp_path: Path) -> None:
    with field_error("size_hint", size_hint):
        read_picture(saved(image(), tmp_path / "picture.jpg"), size_hint)


def test_memory_follows_the_number_of_pixels(tmp_path: Path) -> None:
    """24 bytes for each, whatever the mode; and 16 MB for what Pillow loads with its first picture."""
    exif = Image.Exif()
    exif[0x0112] = 6
    large = image().resize((1000, 1000))
    paths = [
        saved(large.convert("RGBA"), tmp_path / "rgba.png"),
        saved(large.convert("P"), tmp_path / "palette.png", transparency=0),
        saved(Image.fromarray(np.full((1000, 1000), 65535, np.uint16)), tmp_path / "deep.png"),
        saved(large.convert("CMYK"), tmp_path / "turned.jpg", exif=exif),
        saved(large, tmp_path / "picture.webp"),
    ]
    imports = "import sys; from spikformer.data.images.picture import read_picture"
    outcome = run_limited(imports, "for path in sys.argv[1:]: read_picture(path)", *paths, megabytes=24 + 16)
    assert (outcome.exit_code, outcome.errors) == (0, "")
