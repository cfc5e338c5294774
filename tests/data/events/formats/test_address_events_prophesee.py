"""Prophesee .dat files against a plain loop over the description, and against expelliarmus, both ways."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mistakes import mistake

from spikformer.data.events.formats import read_recording
from spikformer.data.events.formats.address_events import read_prophesee
from spikformer.errors import FileError

pytestmark = pytest.mark.core

any_rows = st.lists(
    st.tuples(st.integers(0, 2**30), st.integers(0, 2**14 - 1), st.integers(0, 2**14 - 1), st.integers(0, 1)),
    min_size=1,
)


def decode_plainly(content: bytes):
    while content.startswith(b"%"):
        content = content.partition(b"\n")[2]
    words = struct.iter_unpack("<II", content[2:])
    return [(stamp, word % 2**14, (word >> 14) % 2**14, word >> 28) for stamp, word in words]


@given(rows=any_rows)
def test_any_events_match_the_plain_loop(rows, writers, tmp_path_factory):
    content = writers.prophesee(rows)
    path = tmp_path_factory.getbasetemp() / "events.dat"
    path.write_bytes(content)
    assert writers.rows(read_prophesee(path)) == decode_plainly(content)


def test_expelliarmus_reads_the_same(writers, some_rows, tmp_path):
    expelliarmus = pytest.importorskip("expelliarmus")
    path = tmp_path / "events.dat"
    path.write_bytes(writers.prophesee(some_rows))
    events = expelliarmus.Wizard(encoding="dat").read(str(path))
    assert writers.rows(read_recording(path)) == events[["t", "x", "y", "p"]].tolist()


def test_what_expelliarmus_writes(writers, some_rows, tmp_path):
    expelliarmus = pytest.importorskip("expelliarmus")
    path = tmp_path / "written.dat"
    dtype = np.dtype([("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "u1")], align=True)
    expelliarmus.Wizard(encoding="dat").save(fpath=str(path), arr=np.array(some_rows, dtype))
    assert writers.rows(read_recording(path)) == some_rows


@pytest.mark.parametrize(
    ("row", "size"),
    [((9, 77, 41, 1), (100, 120)), ((9, 120, 41, 1), (240, 304)), ((9, 639, 0, 1), (480, 640)),
     ((9, 0, 719, 1), (720, 1280))],
)  # fmt: skip
def test_a_sensor_that_is_not_stated(row, size, writers, read):
    assert read(writers.prophesee([row], lines="", kind=0), "car.dat").size == size


def test_clock_wraps(writers, read):
    rows = [(2**32 - 1, 0, 0, 1), (2, 0, 0, 1)]
    assert read(writers.prophesee(rows), "a.dat").time_us.tolist() == [2**32 - 1, 2**32 + 2]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("% Width 640\n% Height many\n", ("many", 640)),
        ("% Width 640\n% Height 0\n", (640, 0)),
        ("% Width 100000\n% Height 480\n", (100000, 480)),
    ],
)
def test_bad_sizes(lines, shown, writers, some_rows, read):
    with mistake(FileError, *shown, reason="damaged", at="sensor"):
        read(writers.prophesee(some_rows, lines=lines), "a.dat")


def test_other_versions_and_events(writers, some_rows, read):
    content = writers.prophesee(some_rows)
    with mistake(FileError, 1, 2, reason="unsupported"):
        read(content.replace(b"Version 2", b"Version 1"), "a.dat")
    with mistake(FileError, 2, reason="unsupported"):
        read(content.replace(b"% Version 2\n", b""), "a.dat")
    with mistake(FileError, 14, 8, reason="unsupported"):
        read(writers.prophesee(some_rows, kind=14), "a.dat")


def test_impossible_polarity(writers, some_rows, read):
    with mistake(FileError, 5, reason="damaged", at=7):
        read(writers.prophesee([*some_rows, (80000, 1, 1, 5)]), "a.dat")


def test_cut_in_the_header(writers, read):
    content = writers.prophesee([])
    for missing in (1, 2, 3):
        with mistake(FileError, reason="truncated", at=len(content) - missing):
            read(content[:-missing], "a.dat")
