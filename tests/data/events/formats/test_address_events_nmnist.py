"""N-MNIST files against a plain loop over the description, and against tonic's reader."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mistakes import mistake

from spikformer.data.events.formats.address_events import read_nmnist
from spikformer.errors import FileError

pytestmark = pytest.mark.core


def decode_plainly(content: bytes):
    rows, late = [], 0
    for i in range(0, len(content), 5):
        event = int.from_bytes(content[i : i + 5], "big")
        x, y, on, stamp = event >> 32, event >> 24 & 255, event >> 23 & 1, event & 2**23 - 1
        if y == 240:
            late += 2**13
        else:
            rows.append((stamp + late, x, y, on))
    return rows


events = st.lists(st.one_of(st.binary(min_size=5, max_size=5), st.just(b"\0\xf0\0\0\1")), min_size=1).map(b"".join)


@settings(deadline=None)  # the first call imports tonic
@given(content=events)
def test_any_events_match_the_plain_loop_and_tonic(content, writers, tmp_path_factory):
    tonic = pytest.importorskip("tonic.io")
    path = tmp_path_factory.getbasetemp() / "events.bin"
    path.write_bytes(content)
    rows = writers.rows(read_nmnist(path))
    assert rows == decode_plainly(content)
    dtype = np.dtype([("x", int), ("y", int), ("t", int), ("p", int)])  # in the order in which tonic fills it
    assert rows == tonic.read_mnist_file(str(path), dtype)[["t", "x", "y", "p"]].tolist()


def test_overflow_events_move_the_clock(writers, read):
    event = bytes([3, 4, 0x80, 0, 9])
    overflow = bytes([0, 240, 0, 0, 0])
    rows = writers.rows(read(event + overflow + event + overflow * 2 + event, "a.bin"))
    assert rows == [(9, 3, 4, 1), (9 + 2**13, 3, 4, 1), (9 + 3 * 2**13, 3, 4, 1)]


def test_ncaltech101_has_the_larger_sensor(writers, read):
    assert read(bytes([120, 90, 0, 0, 1]) * 3, "image_0001.bin").size == (180, 240)


def test_a_stray_event_does_not_make_a_larger_sensor(read):
    with mistake(FileError, 200, 4, 34, at=3):
        read(bytes([3, 4, 0, 0, 1]) * 3 + bytes([200, 4, 0, 0, 1]), "a.bin")


def test_a_file_of_overflows_is_read_quickly(read):
    event = bytes([3, 4, 0, 0, 1])
    recording = read(event + bytes([0, 240, 0, 0, 0]) * 300_000 + event, "a.bin")
    assert recording.time_us.tolist() == [1, 1 + 300_000 * 2**13]
