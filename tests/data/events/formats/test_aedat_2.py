"""AEDAT 2.0 against a plain loop over jAER's constants, and against tonic's word reader."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mistakes import mistake

from spikformer.data.events.formats.aedat import read_aedat2
from spikformer.errors import FileError

pytestmark = pytest.mark.core

DVS128 = "ch.unizh.ini.jaer.chip.retina.DVS128"
DAVIS240 = "eu.seebetter.ini.chips.davis.DAVIS240C"
DAVIS346 = "eu.seebetter.ini.chips.davis.Davis346red"
BITS = {DVS128: 16, DAVIS240: 32, DAVIS346: 32}


def decode_plainly(words, chip):
    """Word by word as jAER's DVS128 and DavisBaseCamera extract events, but with rows from the top."""
    rows = []
    for address, stamp in words:
        if chip == DVS128:
            if address & 0x8000 == 0:
                rows.append((stamp, 127 - ((address & 0xFE) >> 1), 127 - ((address & 0x7F00) >> 8), (1 - address) & 1))
        elif address & 0x80000000 == 0 and address & 0x400 == 0:  # neither a frame or IMU word, nor an external input
            height, width = (180, 240) if chip == DAVIS240 else (260, 346)
            x = width - 1 - ((address & 1023 << 12) >> 12)
            rows.append((stamp, x, height - 1 - ((address & 511 << 22) >> 22), (address & 1 << 11) >> 11))
    return rows


@pytest.mark.parametrize("chip", BITS)
@given(data=st.data())
def test_any_words_match_the_plain_loop(data, chip, writers, tmp_path_factory):
    address = st.integers(0, 2 ** BITS[chip] - 1)
    words = data.draw(st.lists(st.tuples(address, st.integers(0, 2**30)), max_size=30))
    path = tmp_path_factory.getbasetemp() / "words.aedat"
    path.write_bytes(writers.aedat2(words, chip))
    assert writers.rows(read_aedat2(path)) == decode_plainly(words, chip)


def test_words_match_tonics(writers, some_rows, tmp_path):
    tonic = pytest.importorskip("tonic.io")
    path = tmp_path / "words.aedat"
    path.write_bytes(writers.formats["davis240"].write(some_rows))
    version, start, _ = tonic.read_aedat_header_from_file(str(path))
    words = tonic.get_aer_events_from_file(str(path), version, start)
    address = words["address"].astype(np.int64)
    recording = read_aedat2(path)
    assert np.array_equal(recording.time_us, words["timeStamp"])
    assert np.array_equal(recording.x, 239 - ((address & 4190208) >> 12))  # the masks of tonic's read_davis_346
    assert np.array_equal(recording.y, 179 - ((address & 2143289344) >> 22))
    assert np.array_equal(recording.on, (address & 2048) >> 11)


def test_directions_and_polarity(writers, read):
    # Address 0 is jAER's lower right corner, and ON: the chip counts columns from the right and marks OFF.
    assert writers.rows(read(writers.aedat2([(0, 1), (0x7FFF, 2)]))) == [(1, 127, 127, 1), (2, 0, 0, 0)]
    assert writers.rows(read(writers.aedat2([(0, 1), (0x800, 2)], DAVIS346))) == [(1, 345, 259, 0), (2, 345, 259, 1)]


def test_special_words_are_left_out(writers, some_rows, read):
    frame, signal, imu, trigger = 0x80000123, 0x80000523, 0x80000C00 | 77 << 12, 0x400
    words = [(word, 3) for word in (frame, signal, imu, trigger, trigger | 0x800)]
    content = writers.formats["davis240"].write(some_rows)
    content += b"".join(struct.pack(">II", *word) for word in words)  # their clock need not agree with the events'
    assert writers.rows(read(content)) == some_rows
    assert writers.rows(read(writers.aedat2([(0x8000, 1), (0, 2), (0x80000000, 3)]))) == [(2, 127, 127, 1)]


def test_a_file_of_nothing_but_special_words(writers, read):
    with mistake(FileError, reason="empty"):
        read(writers.aedat2([(0x80000C00, 5)] * 7, DAVIS240))


def test_clock_wraps(writers, read):
    stamps = [2**32 - 3, 2**32 - 1, 0, 5, 2**31, 2**32 - 1, 7]
    recording = read(writers.aedat2([(0, stamp) for stamp in stamps]))
    wraps = np.array([0, 0, 1, 1, 1, 1, 2])
    assert np.array_equal(recording.time_us, np.array(stamps) + wraps * 2**32)


@pytest.mark.parametrize("before", [20, 2**31, 3_000_000_000])
def test_a_clock_that_was_reset_is_no_wrap(before, writers, read):
    with mistake(FileError, before, at=1):
        read(writers.aedat2([(0, before), (0, 1)]))


def test_chip_in_any_spelling(writers, read):
    for chip in ("DVS128", DVS128.upper(), "eu.seebetter.ini.chips.davis.Davis346B"):
        assert read(writers.aedat2([(0, 1)], chip)).size in ((128, 128), (260, 346))


def test_unknown_chip(writers, read):
    with mistake(FileError, "CochleaAMS1c", "DVS128", "DAVIS240", "DAVIS346", reason="unsupported"):
        read(writers.aedat2([(0, 1)], "ch.unizh.ini.jaer.chip.cochlea.CochleaAMS1c"))


def test_no_chip_named(writers, read):
    assert writers.rows(read(writers.aedat2([(0, 1)], None))) == [(1, 127, 127, 1)]
    with mistake(FileError, "# AEChip", reason="unsupported"):
        read(writers.aedat2([(0, 1), (0x10000, 2)], None))


def test_an_address_that_no_dvs128_has(writers, read):
    with mistake(FileError, "0x00040000", at=1):
        read(writers.aedat2([(0, 1), (0x40000, 2)]))


def test_first_event_that_looks_like_a_header_line(writers, read):
    # 0x23 is "#": row 140 of a DAVIS. Files by jAER before 2018 do not mark the end of the header.
    words = [(0x23000000, 1), (0x23000000, 10), (0, 11)]
    assert len(read(writers.aedat2(words, DAVIS240)).x) == 3
    marked = writers.aedat2([], DAVIS240) + b"#End Of ASCII Header\r\n" + b"#@  5678" * 2
    assert len(read(marked).x) == 2


def test_cut_in_the_header(writers, read):
    header = writers.aedat2([])
    with mistake(FileError, reason="truncated", at=len(header) - 5):
        read(header[:-5])


def test_unix_line_ends_and_foreign_letters(writers, some_rows, read):
    content = writers.formats["dvs128"].write(some_rows).replace(b"\r\n", b"\n")
    content = content.replace(b"# AEChip", "# User name: Müller\n# AEChip".encode("latin-1"))
    assert writers.rows(read(content)) == some_rows
