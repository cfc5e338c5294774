"""Event files by the formats' public descriptions, in plain struct calls that share nothing with the readers."""

import io
import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from spikformer.sampling import Recording

Rows = list[tuple[int, int, int, int]]  # time in microseconds, column, row, 1 for ON


class Format(NamedTuple):
    """A way to write events, the file's usual ending, and its sensor."""

    write: Callable[[Rows], bytes]
    ending: str
    size: tuple[int, int]


def aedat2(words: list[tuple[int, int]], chip: str | None = "ch.unizh.ini.jaer.chip.retina.DVS128") -> bytes:
    header = b"#!AER-DAT2.0\r\n# This is a raw AE data file - do not edit\r\n# Timestamps tick is 1 us\r\n"
    header += b"" if chip is None else f"# AEChip: {chip}\r\n".encode()
    return header + b"".join(struct.pack(">II", address, stamp) for address, stamp in words)


def dvs128(rows: Rows) -> bytes:
    return aedat2([((127 - y) << 8 | (127 - x) << 1 | 1 - on, t % 2**32) for t, x, y, on in rows])


def davis240(rows: Rows) -> bytes:
    chip = "eu.seebetter.ini.chips.davis.DAVIS240C"
    return aedat2([((179 - y) << 22 | (239 - x) << 12 | on << 11, t % 2**32) for t, x, y, on in rows], chip)


def aedat3_packet(rows: Rows, kind: int = 1, source: int = 1, capacity: int | None = None, valid: int = 1) -> bytes:
    """Rows of one packet share the upper bits of their time."""
    capacity = len(rows) if capacity is None else capacity
    overflow = rows[0][0] >> 31 if rows else 0
    header = struct.pack("<hhiiiiii", kind, source, 8, 4, overflow, capacity, len(rows), len(rows) * valid)
    events = [struct.pack("<Ii", x << 17 | y << 2 | on << 1 | valid, t & 2**31 - 1) for t, x, y, on in rows]
    return header + b"".join(events) + bytes(8 * (capacity - len(rows)))


def aedat3(*packets: bytes, source: str = "#Source 1: DVS128\r\n") -> bytes:
    header = f"#!AER-DAT3.1\r\n#Format: RAW\r\n{source}#Start-Time: 2016-09-14 15:14:45 (TZ-0700)\r\n#!END-HEADER\r\n"
    return header.encode() + b"".join(packets)


def gesture(rows: Rows) -> bytes:
    packets, start = [], 0
    for end in range(1, len(rows) + 1):  # a new packet every three events, and where the clock overflows
        if end == len(rows) or end - start == 3 or rows[end][0] >> 31 != rows[start][0] >> 31:
            packets.append(aedat3_packet(rows[start:end]))
            start = end
    return aedat3(*packets)


STREAM = """<node name="{number}" path="/outInfo/{number}/"><attr key="compression" type="string">NONE</attr>
<attr key="typeIdentifier" type="string">{kind}</attr><node name="info" path="/outInfo/{number}/info/">
<attr key="sizeX" type="int">{width}</attr><attr key="sizeY" type="int">{height}</attr></node></node>"""
STREAMS = STREAM.format(number=0, kind="EVTS", width=320, height=240) + STREAM.format(
    number=2, kind="IMUS", width=0, height=0
)


def aedat4_header(compression: int = 0, table: int = -1, streams: str = STREAMS) -> bytes:
    text = f'<dv version="2.0"><node name="outInfo" path="/outInfo/">{streams}</node></dv>'.encode()
    # Root table at 24, its vtable of three fields (at 4, 12 and 8 in the table) at 14, the text at 44.
    body = struct.pack("<I4s6xHHHHHiiIq", 24, b"IOHE", 10, 20, 4, 12, 8, 10, compression, 12, table)
    body += struct.pack("<I", len(text)) + text + b"\0"
    return b"#!AER-DAT4.0\r\n" + struct.pack("<I", len(body)) + body


def aedat4_events(rows: Rows, count: int | None = None) -> bytes:
    # Root table at 16, its vtable of one field at 10, the vector at 24.
    body = struct.pack("<I4sHHHHiiI", 16, b"EVTS", 0, 6, 8, 4, 6, 4, len(rows) if count is None else count)
    body += b"".join(struct.pack("<qhhB3x", *row) for row in rows)
    return struct.pack("<I", len(body)) + body


def aedat4_packet(content: bytes, stream: int = 0) -> bytes:
    return struct.pack("<ii", stream, len(content)) + content


def dv(rows: Rows, compression: int = 0, compress: Callable[[bytes], bytes] = bytes) -> bytes:
    packets = [aedat4_packet(compress(aedat4_events(rows[i : i + 3]))) for i in range(0, len(rows), 3)]
    packets.insert(1, aedat4_packet(b"\1\2\3", stream=2))  # another stream's content is nobody's business
    header = aedat4_header(compression)
    table = len(header) + sum(map(len, packets))
    return aedat4_header(compression, table) + b"".join(packets) + b"the table"


def dv_lz4(rows: Rows) -> bytes:
    return dv(rows, 1, pytest.importorskip("lz4.frame").compress)


def dv_zstd(rows: Rows) -> bytes:
    return dv(rows, 3, pytest.importorskip("zstandard").ZstdCompressor().compress)


def nmnist(rows: Rows) -> bytes:
    return b"".join(struct.pack(">BBBH", x, y, on << 7 | t >> 16, t & 0xFFFF) for t, x, y, on in rows)


def prophesee(rows: Rows, lines: str = "% Width 640\n% Height 480\n", kind: int = 12) -> bytes:
    header = f"% Data file containing CD events\n% Date 2020-09-14 14:18:29\n% Version 2\n{lines}".encode()
    return header + bytes([kind, 8]) + b"".join(struct.pack("<II", t, on << 28 | y << 14 | x) for t, x, y, on in rows)


def npy(rows: Rows) -> bytes:
    file = io.BytesIO()
    dtype = [("x", "<i2"), ("y", "<i2"), ("p", "?"), ("weight", "<f4"), ("t", "<u8")]
    np.save(file, np.array([(x, y, on, 0.5, t) for t, x, y, on in rows], dtype))
    return file.getvalue()


def npz(rows: Rows, save: Callable[..., None] = np.savez) -> bytes:
    file = io.BytesIO()
    save(file, **{name: np.array([row[i] for row in rows], int) for i, name in enumerate("txyp")})
    return file.getvalue()


FORMATS = {
    "dvs128": Format(dvs128, ".aedat", (128, 128)),
    "davis240": Format(davis240, ".aedat", (180, 240)),
    "aedat3": Format(gesture, ".aedat", (128, 128)),
    "aedat4": Format(dv, ".aedat4", (240, 320)),
    "aedat4_lz4": Format(dv_lz4, ".aedat4", (240, 320)),
    "aedat4_zstd": Format(dv_zstd, ".aedat4", (240, 320)),
    "nmnist": Format(nmnist, ".bin", (34, 34)),
    "prophesee": Format(prophesee, ".dat", (480, 640)),
    "npy": Format(npy, ".npy", (34, 34)),
    "npz": Format(npz, ".npz", (34, 34)),
    "npz_compressed": Format(lambda rows: npz(rows, np.savez_compressed), ".npz", (34, 34)),
}


class Writers:
    """What the tests use of this file; with pytest's importlib mode they cannot import it."""

    formats = FORMATS
    aedat2 = staticmethod(aedat2)
    aedat3 = staticmethod(aedat3)
    aedat3_packet = staticmethod(aedat3_packet)
    aedat4_header = staticmethod(aedat4_header)
    aedat4_events = staticmethod(aedat4_events)
    aedat4_packet = staticmethod(aedat4_packet)
    stream = staticmethod(STREAM.format)
    prophesee = staticmethod(prophesee)

    @staticmethod
    def rows(recording: Recording) -> Rows:
        return list(zip(*(column.tolist() for column in recording[:4]), strict=True))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "format_name" in metafunc.fixturenames:
        metafunc.parametrize("format_name", FORMATS)


@pytest.fixture(scope="session")
def writers() -> type[Writers]:
    return Writers


@pytest.fixture(scope="session")
def some_rows() -> Rows:
    """Events inside every sensor, two of them at one time."""
    return [(5, 0, 0, 1), (7, 33, 0, 0), (7, 0, 33, 1), (19, 5, 9, 0), (4000, 33, 33, 1), (70000, 20, 30, 0),
            (70001, 21, 30, 1)]  # fmt: skip


@pytest.fixture
def read(tmp_path) -> Callable[..., Recording]:
    """Write bytes to a file and read them as a recording."""
    from spikformer.data.events.formats import read_recording

    def read(data: bytes, name: str = "sample.aedat") -> Recording:
        (tmp_path / name).write_bytes(data)
        return read_recording(tmp_path / name)

    return read
