"""Files that would take far more memory or time than their size allows: each is reported before it goes off."""

import bz2
import gzip
import io
import json
import os
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from tests.data.conftest import (
    STREAM,
    aedat2,
    aedat3,
    aedat3_packet,
    aedat4_events,
    aedat4_header,
    aedat4_packet,
    nmnist,
    prophesee,
)
from tests.data.images.drawn import png
from tests.limits import run_limited

MEGABYTES = 64  # that a reader may take for any of them
SECONDS = 3  # of a processor

READERS = """
import json, os, shutil, sys, time
from pathlib import Path
from spikformer.engine import autotune
from spikformer.data.events.samples import FrameCache
from spikformer.data.events.formats import read_recording
from spikformer.data.events.sets import read_gestures
from spikformer.data.images.cifar import read_cifar
from spikformer.data.images.mnist import read_idx
from spikformer.data.images.picture import read_picture
from spikformer.data.unpacking import unpack

def read_cached(path):
    cache = FrameCache(Path(path).parent, 10**9)
    shutil.copy(path, cache._path("key"))
    if cache.get("key") is None:
        raise ValueError(f"{path} counts as missing")

def read_thresholds(path):
    os.environ["SPIKFORMER_CACHE"] = str(Path(path).parent)
    if not autotune._read_cache():
        raise ValueError(f"{path} counts as missing")

readers = {
    "thresholds": read_thresholds,
    "labels": lambda path: read_gestures(Path(path).parent, "trials.txt"),
    "recording": read_recording,
    "frames": read_cached,
    "gestures": lambda path: read_gestures(Path(path).parent, Path(path).name),
    "picture": read_picture,
    "idx": read_idx,
    "cifar": lambda path: read_cifar(path, "cifar10"),
    "archive": lambda path: unpack(Path(path), Path(f"{path}.folder"), (".bin",)),
}
"""
READ_EACH = """
for path in sys.argv[1:]:
    start, message = time.process_time(), ""
    try:
        readers[Path(path).parent.name](path)
    except ValueError as error:
        message = str(error)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    print(json.dumps([path, message, time.process_time() - start]))
"""


def tar_header(name: str, size: int, kind: bytes = tarfile.REGTYPE, pax: dict[str, str] | None = None) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.pax_headers = size, kind, pax or {}
    return member.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)


def zipped(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED, copies: int = 1) -> bytes:
    """With several copies, the directory lists one member many times."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
        archive.filelist *= copies
    return file.getvalue()


def array(shape: str, dtype: str = "'<i8'", version: int = 1, padding: int = 0) -> bytes:
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}".encode() + b" " * padding + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header


def npz(t: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in "xyp":
            archive.writestr(f"{name}.npy", array("(1,)") + bytes(8))
        archive.writestr("t.npy", t)
    return file.getvalue()


def lying_npz() -> bytes:
    """Deflated zeros that claim, in both of zip's headers, to be 4 GB."""
    content = npz(array("(500_000_000,)") + bytes(1_000_000))
    return content.replace(
        struct.pack("<I", 1_000_000 + len(array("(500_000_000,)"))), struct.pack("<I", 4_000_000_000)
    )


def aedat4(compression: int, packet: bytes) -> bytes:
    return aedat4_header(compression) + aedat4_packet(packet)


def lz4(size: int, store_size: bool) -> bytes:
    return pytest.importorskip("lz4.frame").compress(aedat4_events([])[:8] + bytes(size), store_size=store_size)


def zstd(size: int, store_size: bool) -> bytes:
    compressor = pytest.importorskip("zstandard").ZstdCompressor(write_content_size=store_size)
    return compressor.compress(aedat4_events([])[:8] + bytes(size))


def zstd_claim(window_log: int) -> bytes:
    """A frame that asks for a window of 2^41 bytes, and one that claims to hold 2^60."""
    return struct.pack("<IBB", 0xFD2FB528, 0, (window_log - 10) << 3) + b"\1\0\0"


def tiff_strips(count: int) -> bytes:
    """One strip of 8×8 pixels, whose offsets are said to be `count` numbers."""
    tags = [(256, 3, 1, 8), (257, 3, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, count, 200),
            (277, 3, 1, 1), (278, 3, 1, 8), (279, 4, count, 64)]  # fmt: skip
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(400)


def png_text(kind: bytes) -> bytes:
    """A single pixel, and compressed text beside it."""
    content = png(struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0), b"\0\0")
    chunk = kind + b"name\0\0" + zlib.compress(bytes(120_000_000), 1)
    place = content.index(b"IDAT") - 4
    chunk = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return content[:place] + chunk + content[place:]


def idx(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + content


def frames(content: bytes) -> bytes:
    """An entry of the cache with a checksum that is right."""
    return b"spikfrm1" + zlib.crc32(content).to_bytes(4, "little") + content


SPARSE = {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,1"}
NAME = tar_header("1", 5, tarfile.GNUTYPE_LONGNAME) + b"1.bin".ljust(512, b"\0")
PAX = tar_header("1", 24, tarfile.XGLTYPE) + b"12 a=11111\n12 b=22222\n".ljust(512, b"\0")
SENSOR = STREAM.format(number=0, kind="EVTS", width=4096, height=4096)
BIG = bytes(40_000_000)
BOMBS = {
    "archive/deflate.zip": lambda: zipped("1.bin", BIG),
    "archive/bzip2.zip": lambda: zipped("1.bin", BIG, zipfile.ZIP_BZIP2),
    "archive/lzma.zip": lambda: zipped("1.bin", bytes(1_000), zipfile.ZIP_LZMA),
    "archive/one_for_many.zip": lambda: zipped("1.bin", bytes(1_000_000), copies=5_000),
    "archive/deflate.tar.gz": lambda: gzip.compress(tar_header("1.bin", len(BIG)) + BIG),
    "archive/bzip2.tar": lambda: bz2.compress(tar_header("data_batch_1", len(BIG)) + BIG),
    "archive/unwanted.tar": lambda: tar_header("other", 1 << 40),
    "archive/unwanted.tar.gz": lambda: gzip.compress(tar_header("other", 1 << 40)),
    "archive/long_name.tar.gz": lambda: gzip.compress(tar_header("1", 1 << 30, tarfile.GNUTYPE_LONGNAME) + BIG),
    "archive/pax.tar.gz": lambda: gzip.compress(tar_header("1", 1 << 25, tarfile.XHDTYPE) + b"1" * (1 << 25)),
    "archive/sparse.tar": lambda: tar_header("1.bin", 0, pax=SPARSE),
    "archive/step_back.tar": lambda: tar_header("1.bin", 0) + tar_header("1.bin", 0, pax={"size": "-2048"}),
    "archive/chain.tar": lambda: 2_000 * NAME,
    "archive/globals.tar": lambda: 20_000 * PAX,
    "cifar/unwanted.tar": lambda: tar_header("other", 1 << 40),
    "cifar/unwanted.tar.gz": lambda: gzip.compress(tar_header("other", 1 << 40)),
    "cifar/there.tar.gz": lambda: gzip.compress(tar_header("other", len(BIG)) + BIG),
    "cifar/wanted.tar.gz": lambda: gzip.compress(tar_header("data_batch_1", len(BIG)) + BIG),
    "idx/zeros.gz": lambda: gzip.compress(idx((60_000, 28, 28)) + BIG),
    "idx/claimed": lambda: idx((60_000, 28, 28)),
    "idx/axes": lambda: idx((2**32 - 1,) * 8),
    "idx/sparse": lambda: idx((2**32 - 1, 16)),
    "labels/a_labels.csv": lambda: b"class, startTime_usec, endTime_usec\n" + 200_000 * b"1,1,2\n",
    "thresholds/density_thresholds.json": lambda: b"[" * 10_000_000,
    "recording/deflate.npz": lambda: npz(array("(4_900_000,)") + BIG),
    "recording/bzip2.npz": lambda: npz(array("(4_900_000,)") + BIG, zipfile.ZIP_BZIP2),
    "recording/lzma.npz": lambda: npz(array("(100,)") + bytes(1_000), zipfile.ZIP_LZMA),
    "recording/lying.npz": lambda: lying_npz(),
    "recording/header.npz": lambda: npz(array("(1,)", version=2, padding=50_000_000)),
    "recording/shape.npy": lambda: array("(999_999_999_999,)"),
    "recording/item.npy": lambda: array("(3,)", "'V2147483647'"),
    "recording/nested.npy": lambda: array("(" * 4_000 + "1" + ")" * 4_000),
    "recording/header.npy": lambda: array("(1,)", version=2, padding=5_000_000),
    "recording/lz4.aedat4": lambda: aedat4(1, lz4(20_000_000, store_size=False)),
    "recording/lz4_stated.aedat4": lambda: aedat4(1, lz4(20_000_000, store_size=True)),
    "recording/zstd.aedat4": lambda: aedat4(3, zstd(120_000_000, store_size=False)),
    "recording/zstd_stated.aedat4": lambda: aedat4(3, zstd(120_000_000, store_size=True)),
    "recording/zstd_window.aedat4": lambda: aedat4(3, zstd_claim(41)),
    "recording/sensor.aedat4": lambda: aedat4_header(streams=SENSOR),
    "recording/deep.aedat4": lambda: aedat4_header(streams="<a>" * 100_000),
    "recording/lines_2.aedat": lambda: aedat2([]) + 1_000_000 * b"#ab\n",
    "recording/lines_3.aedat": lambda: aedat3(source=1_000_000 * "#ab\n"),
    "recording/lines.dat": lambda: prophesee([], 1_000_000 * "%ab\n"),
    "recording/packets.aedat": lambda: aedat3(*100_000 * [aedat3_packet([])]),
    "recording/capacity.aedat": lambda: aedat3(struct.pack("<hhiiiiii", 1, 1, 8, 4, 0, *3 * [2**31 - 1])),
    "recording/event_size.aedat": lambda: aedat3(struct.pack("<hhiiiiii", 1, 1, *6 * [2**31 - 1])),
    "recording/overflows.bin": lambda: nmnist(600_000 * [(0, 0, 240, 0)]),
    "frames/claimed.frames": lambda: frames(array("(2, 2, 40_000, 40_000)", "'|u1'")),
    "frames/header.frames": lambda: frames(array("(1, 1, 1, 1)", "'|u1'", version=2, padding=5_000_000) + b"0"),
    "frames/item.frames": lambda: frames(array("(1, 1, 1, 1)", "'V2147483647'")),
    "gestures/long.txt": lambda: 10_000_000 * b"a.aedat\n",
    "gestures/repeated.txt": lambda: 500_000 * b"a\n",
    "picture/small.png": lambda: png(struct.pack(">IIBBBBB", 5_000, 5_000, 1, 0, 0, 0, 0), bytes(5_000 * 626)),
    "picture/warned.png": lambda: png(struct.pack(">IIBBBBB", 9_500, 9_500, 1, 0, 0, 0, 0), bytes(1_000)),
    "picture/raised.png": lambda: png(struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0), bytes(1_000)),
    "picture/text.png": lambda: png_text(b"zTXt"),
    "picture/profile.png": lambda: png_text(b"iCCP"),
    "picture/strips.tif": lambda: tiff_strips(1 << 30),
    "picture/gray.ppm": lambda: b"P5 65000 65000 255\n",
    "picture/frame.gif": lambda: b"GIF89a\1\0\1\0\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\2\0\0;",
    "picture/rows.bmp": lambda: b"BM" + struct.pack("<IIIIiiHHIIIIII", 54, 0, 54, 40, 60_000, 60_000, 1, 24, *[0] * 6),
    "picture/canvas.webp": lambda: (
        b"RIFF" + struct.pack("<I4s4sII", 22, b"WEBP", b"VP8X", 10, 2) + b"\xfe\x3f\0\xfe\x3f\0"
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, tuple[str, float]]:
    """What a child in little memory says to each of them, and how many seconds it took."""
    folder = tmp_path_factory.mktemp("bombs")
    paths = [folder / name for name in BOMBS]
    for path, make in zip(paths, BOMBS.values(), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(make())
    os.truncate(folder / "idx" / "sparse", 1 << 36)  # as large as it says, and hardly a block on the disk
    (folder / "labels" / "trials.txt").write_text("a.aedat\n")
    (folder / "labels" / "a.aedat").touch()
    outcome = run_limited(READERS, READ_EACH, *paths, megabytes=MEGABYTES, seconds=120)
    assert outcome.exit_code == 0, outcome.errors
    rows = map(json.loads, outcome.output.splitlines())
    return {Path(path): (message, seconds) for path, message, seconds in rows}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_reported_before_it_goes_off(bomb: str, outcomes: dict[Path, tuple[str, float]]) -> None:
    ((path, (message, seconds)),) = [(path, said) for path, said in outcomes.items() if str(path).endswith(bomb)]
    assert message.startswith(str(path))
    assert message.isprintable()
    assert len(message) < len(str(path)) + 300
    assert seconds < SECONDS
    assert not path.with_name(f"{path.name}.folder").exists()
