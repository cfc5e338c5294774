"""AEDAT 4 against a plain loop over the description, with and without compression."""

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mistakes import mistake

from spikformer.data.events.formats.aedat4 import read_aedat4
from spikformer.errors import FileError

pytestmark = pytest.mark.core


def decode_plainly(content: bytes, decompress=bytes):
    """Packet by packet, event by event, without the table of fields: DV always puts the vector at byte 28."""
    position = 18 + struct.unpack_from("<I", content, 14)[0]
    end = struct.unpack_from("<q", content, 54)[0] % (len(content) + 1)
    rows = []
    while position < end:
        stream, length = struct.unpack_from("<ii", content, position)
        if stream == 0:
            packet = decompress(content[position + 8 : position + 8 + length])
            count = struct.unpack_from("<I", packet, 28)[0]
            rows += [struct.unpack_from("<qhhB", packet, 32 + 16 * i) for i in range(count)]
        position += 8 + length
    return rows


def test_files_match_the_plain_loop(writers, some_rows, read):
    content = writers.formats["aedat4"].write(some_rows)
    assert writers.rows(read(content)) == decode_plainly(content) == some_rows


@pytest.mark.parametrize(("name", "library"), [("aedat4_lz4", "lz4.frame"), ("aedat4_zstd", "zstandard")])
def test_compressed_files_match_the_plain_loop(name, library, writers, some_rows, read):
    library = pytest.importorskip(library)
    decompress = library.decompress
    content = writers.formats[name].write(some_rows)
    assert writers.rows(read(content)) == decode_plainly(content, decompress) == some_rows


@given(
    rows=st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), *[st.integers(-(2**15), 2**15 - 1)] * 2, st.integers(0, 1))
    )
)
def test_any_event_matches_the_plain_loop(rows, writers, tmp_path_factory):
    content = writers.formats["aedat4"].write(rows)
    path = tmp_path_factory.getbasetemp() / "packets.aedat4"
    path.write_bytes(content)
    assert writers.rows(read_aedat4(path)) == decode_plainly(content) == rows


def test_without_a_table(writers, some_rows, read):
    packets = writers.aedat4_packet(writers.aedat4_events(some_rows))
    assert writers.rows(read(writers.aedat4_header(table=-1) + packets)) == some_rows


def test_fields_left_out_of_the_header_have_defaults(writers, some_rows, read):
    # The vtable starts 14 bytes into the buffer; its first two fields are compression and the table's place.
    header = bytearray(writers.aedat4_header(compression=9, table=9))
    header[18 + 18 : 18 + 22] = bytes(4)
    assert writers.rows(read(header + writers.aedat4_packet(writers.aedat4_events(some_rows)))) == some_rows


def test_packet_without_a_vector(writers, some_rows, read):
    empty = struct.pack("<II4sHHHHi", 20, 16, b"EVTS", 0, 6, 4, 0, 6)
    packets = writers.aedat4_packet(empty) + writers.aedat4_packet(writers.aedat4_events(some_rows))
    assert writers.rows(read(writers.aedat4_header() + packets)) == some_rows


def test_first_camera_of_several(writers, some_rows, read):
    streams = [writers.stream(number=n, kind="EVTS", width=w, height=50) for n, w in ((12, 60), (3, 70))]
    packets = writers.aedat4_packet(b"", 12) + writers.aedat4_packet(writers.aedat4_events(some_rows), 3)
    recording = read(writers.aedat4_header(streams="".join(streams)) + packets)
    assert recording.size == (50, 70)
    assert writers.rows(recording) == some_rows


@pytest.mark.parametrize(("compression", "package"), [(1, "lz4"), (2, "lz4"), (3, "zstandard"), (4, "zstandard")])
def test_a_missing_library_is_named(compression, package, writers, read, monkeypatch):
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with mistake(FileError, f"pip install {package}", reason="unsupported"):
        read(writers.aedat4_header(compression))


@pytest.mark.parametrize(("name", "library"), [("aedat4_lz4", "lz4.frame"), ("aedat4_zstd", "zstandard")])
def test_damaged_frames(name, library, writers, some_rows, read):
    library = pytest.importorskip(library)
    start = len(writers.aedat4_header())
    for content in (b"", b"garbage", library.compress(b"neither"), library.compress(bytes(1000))[:-9]):
        compression = 1 if name == "aedat4_lz4" else 3
        with mistake(FileError, reason="damaged", at=start):
            read(writers.aedat4_header(compression) + writers.aedat4_packet(content))


def test_frames_that_claim_too_much(writers, some_rows, read):
    lz4 = pytest.importorskip("lz4.frame")
    zstandard = pytest.importorskip("zstandard")
    events = writers.aedat4_events(some_rows)
    claim = struct.pack("<Q", len(events))
    for compression, frame in (
        (1, bytearray(lz4.compress(events, store_size=True))),
        (3, bytearray(zstandard.compress(bytes(10**7)))),  # a bomb of honest size
    ):
        if compression == 1:
            place = frame.index(claim)
            frame[place : place + 8] = struct.pack("<Q", 2**40)
        with mistake(FileError, reason="damaged", at=len(writers.aedat4_header(compression))):
            read(writers.aedat4_header(compression) + writers.aedat4_packet(frame))


@pytest.mark.parametrize(
    ("streams", "at"),
    [
        ("", 14),
        ("<node>", 14),
        ("<!-- -->", 14),
        ('<node name="x"><attr key="typeIdentifier">EVTS</attr></node>', 14),
        ('<node name="0"><attr key="typeIdentifier">EVTS</attr></node>', "sensor"),
        ('<node name="0"><attr key="typeIdentifier">EVTS</attr><attr key="sizeX">9e9</attr></node>', 14),
    ],
)
def test_bad_descriptions(streams, at, writers, read):
    with mistake(FileError, reason="damaged", at=at):
        read(writers.aedat4_header(streams=streams))


def test_bad_headers(writers, some_rows, read):
    header = writers.aedat4_header()
    with mistake(FileError, at=14):
        read(header.replace(b"IOHE", b"EOHE"))
    with mistake(FileError, at=14):
        read(header[:60])
    with mistake(FileError, 7, at="compression"):
        read(writers.aedat4_header(compression=7))
    for table in (10**12, 3, -2):
        with mistake(FileError, reason="truncated", at=table):
            read(writers.aedat4_header(table=table))


def test_bad_packets(writers, some_rows, read):
    header = writers.aedat4_header()
    packet = writers.aedat4_packet(writers.aedat4_events(some_rows))
    with mistake(FileError, reason="truncated", at=len(header + packet)):
        read(header + packet + b"\0\0\0")
    with mistake(FileError, 144, 143, reason="truncated", at=len(header)):
        read(header + packet[:-1])
    with mistake(FileError, -1, reason="truncated", at=len(header)):
        read(header + struct.pack("<ii", 0, -1))
    with mistake(FileError, 8, 144, reason="damaged", at=len(header)):
        read(header + writers.aedat4_packet(writers.aedat4_events(some_rows, count=8)))
    with mistake(FileError, "b'IMUS'", reason="damaged", at=len(header)):
        read(header + packet.replace(b"EVTS", b"IMUS"))
    with mistake(FileError, reason="damaged", at=len(header)):
        read(header + packet[:28] + struct.pack("<i", 10**6) + packet[32:])
