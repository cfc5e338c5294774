"""AEDAT 3.1 against a plain loop over the description, and against tonic's packet reader."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mistakes import mistake

from spikformer.data.events.formats.aedat import read_aedat3
from spikformer.errors import FileError

pytestmark = pytest.mark.core

packet_rows = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 127), st.integers(0, 127), st.integers(0, 1)), max_size=9
)


def decode_plainly(content: bytes):
    position = content.index(b"#!END-HEADER\r\n") + 14
    rows = []
    while position < len(content):
        kind, _, size, _, overflow, capacity, number, _ = struct.unpack_from("<hhiiiiii", content, position)
        for i in range(number if kind == 1 else 0):
            event, stamp = struct.unpack_from("<Ii", content, position + 28 + i * size)
            if event % 2 == 1:
                rows.append((overflow * 2**31 + stamp, event >> 17, (event >> 2) % 2**15, (event >> 1) % 2))
        position += 28 + capacity * size
    return rows


@given(
    packets=st.lists(st.tuples(packet_rows, st.sampled_from([0, 1, 1, 2, 3]), st.integers(0, 1), st.integers(0, 3))),
    overflow=st.integers(0, 3),
)
def test_any_packets_match_the_plain_loop(packets, overflow, writers, tmp_path_factory):
    content = writers.aedat3(
        *(
            writers.aedat3_packet(
                [(t + overflow * 2**31, x, y, on) for t, x, y, on in rows], kind, 1, len(rows) + spare, valid
            )
            for rows, kind, valid, spare in packets
        )
    )
    path = tmp_path_factory.getbasetemp() / "packets.aedat"
    path.write_bytes(content)
    assert writers.rows(read_aedat3(path)) == decode_plainly(content)


def test_events_match_tonics(writers, some_rows, tmp_path):
    tonic = pytest.importorskip("tonic.io")
    path = tmp_path / "gesture.aedat"
    path.write_bytes(writers.formats["aedat3"].write(some_rows))
    version, start, _ = tonic.read_aedat_header_from_file(str(path))
    words = tonic.get_aer_events_from_file(str(path), version, start)
    address = words["address"]
    recording = read_aedat3(path)
    assert np.array_equal(recording.time_us, words["timeStamp"])
    assert np.array_equal(recording.x, (address >> 17) & 0x1FFF)  # the bits of tonic's read_dvs_ibm
    assert np.array_equal(recording.y, (address >> 2) & 0x1FFF)
    assert np.array_equal(recording.on, (address >> 1) & 1)


def test_clock_overflows(writers, read):
    rows = [(2**31 - 2, 1, 1, 1), (2**31 + 3, 2, 2, 0), (5 * 2**31, 3, 3, 1)]
    assert writers.rows(read(writers.formats["aedat3"].write(rows))) == rows


def test_other_packets_and_invalid_events_are_left_out(writers, some_rows, read):
    special = writers.aedat3_packet([(3, 0, 0, 0)], kind=0)
    frame = struct.pack("<hhiiiiii", 2, 1, 1000, 12, 0, 1, 1, 1) + bytes(1000)
    invalid = writers.aedat3_packet([(9, 1, 1, 1)], valid=0)
    events = writers.aedat3_packet(some_rows, capacity=20)
    assert writers.rows(read(writers.aedat3(special, frame, invalid, events, special))) == some_rows


def test_sensor_by_the_source_of_the_events(writers, some_rows, read):
    packet = writers.aedat3_packet(some_rows, source=1)
    both = "#Source 0: DVS128\r\n#-Source 1: DVS128\r\n#Source 1: DAVIS240C\r\n"
    assert read(writers.aedat3(packet, source=both)).size == (180, 240)
    assert read(writers.aedat3(packet, source="#Source 1: NewCamera\r\n")).size == (128, 128)
    assert read(writers.aedat3(packet, source="")).size == (128, 128)


@pytest.mark.parametrize(
    ("fields", "reason", "shown"),
    [
        ((1, 1, 8, 4, 0, -1, -1, 0), "damaged", ()),
        ((1, 1, 8, 4, 0, 1, 2, 0), "damaged", ()),
        ((1, 1, 8, 4, -1, 0, 0, 0), "damaged", ()),
        ((1, 1, -8, 4, 0, 0, 0, 0), "damaged", ()),
        ((1, 1, 16, 4, 0, 0, 0, 0), "damaged", (16, 4, 8)),
        ((1, 1, 8, 0, 0, 0, 0, 0), "damaged", (8, 0, 4)),
        ((2, 1, 2**31 - 1, 4, 0, 2**31 - 1, 0, 0), "truncated", ()),
        ((1, 1, 8, 4, 0, 3, 3, 3), "truncated", (24, 0)),
    ],
)
def test_bad_packet_headers(fields, reason, shown, writers, some_rows, read):
    content = writers.formats["aedat3"].write(some_rows)
    with mistake(FileError, *shown, reason=reason, at=len(content)):
        read(content + struct.pack("<hhiiiiii", *fields))


def test_cut_in_a_packet_header(writers, some_rows, read):
    content = writers.formats["aedat3"].write(some_rows)
    with mistake(FileError, reason="truncated", at=len(content)):
        read(content + b"\1\0\1\0")


def test_two_cameras(writers, some_rows, read):
    with mistake(FileError, 2, reason="unfit"):
        read(writers.aedat3(*(writers.aedat3_packet(some_rows, source=i) for i in (1, 2))))


def test_negative_time(writers, read):
    packet = writers.aedat3_packet([(1, 2, 3, 1)])[:-4] + struct.pack("<i", -5)
    with mistake(FileError, reason="damaged", at=0):
        read(writers.aedat3(packet))


def test_other_versions_and_packet_formats(writers, some_rows, read):
    content = writers.formats["aedat3"].write(some_rows)
    with mistake(FileError, "3.1", reason="foreign"):
        read(content.replace(b"DAT3.1", b"DAT3.0"))
    with mistake(FileError, "Format: Serial-TS", "Format: RAW", reason="unsupported"):
        read(content.replace(b"Format: RAW", b"Format: Serial-TS"))
