"""Every format: what is written is read, what is damaged is named."""

import tracemalloc
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mistakes import file_error, mistake

from spikformer.data.events.formats import ENDINGS, check, read_recording
from spikformer.errors import FileError
from spikformer.sampling import Recording

# (0, 0) … (33, 33) lie inside every sensor, and no N-MNIST clock goes beyond 23 bits.
sorted_rows = st.lists(
    st.tuples(st.integers(0, 2**23 - 1), st.integers(0, 33), st.integers(0, 33), st.integers(0, 1)), min_size=1
).map(sorted)
quickly = settings(deadline=timedelta(seconds=2), max_examples=150)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


def read_or_message(path):
    try:
        return read_recording(path), ""
    except ValueError as error:
        return None, str(error)


def assert_read_or_rejected(path) -> None:
    """Either a sound recording or a ValueError that names the file; nothing else."""
    recording, message = read_or_message(path)
    if recording is None:
        assert message.startswith(str(path))
        assert message.endswith(".")
        assert message.isprintable()
        assert len(message) < len(str(path)) + 300
    else:
        assert [column.dtype for column in recording[:4]] == [np.int64, np.int16, np.int16, bool]
        assert len({len(column) for column in recording[:4]}) == 1
        assert len(recording.x) > 0


@quickly
@given(rows=sorted_rows)
def test_round_trip(rows, format_name, writers, scratch):
    written = writers.formats[format_name]
    path = scratch / f"round_trip{written.ending}"
    path.write_bytes(written.write(rows))
    recording = read_recording(path)
    assert writers.rows(recording) == rows
    assert recording.size == written.size
    assert [column.dtype for column in recording[:4]] == [np.int64, np.int16, np.int16, bool]


def test_arrays_are_the_callers_own(format_name, writers, some_rows, read):
    recording = read(writers.formats[format_name].write(some_rows), f"own{writers.formats[format_name].ending}")
    for column in recording[:4]:
        assert column.flags.c_contiguous


@pytest.mark.parametrize("name", ["dvs128", "aedat3", "aedat4", "prophesee", "npy", "npz"])
def test_magic_goes_before_the_ending(name, writers, some_rows, read):
    assert writers.rows(read(writers.formats[name].write(some_rows), "misnamed.bin")) == some_rows


@pytest.mark.parametrize("ending", [".AEDAT", ".aedat2"])
def test_ending_in_any_case(ending, writers, some_rows, read):
    assert writers.rows(read(writers.formats["dvs128"].write(some_rows), f"a{ending}")) == some_rows
    assert writers.rows(read(writers.formats["nmnist"].write(some_rows), "a.BIN")) == some_rows


@quickly
@given(data=st.data())
def test_fuzz_damaged_files(data, format_name, writers, some_rows, scratch):
    written = writers.formats[format_name]
    content = bytearray(written.write(some_rows))
    places = st.integers(0, len(content) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        content[place] = byte
    content = content[: data.draw(st.one_of(st.just(len(content)), places))]
    content += data.draw(st.binary(max_size=20))
    path = scratch / f"damaged{written.ending}"
    path.write_bytes(content)
    assert_read_or_rejected(path)


@quickly
@given(content=st.binary(max_size=300), ending=st.sampled_from([*ENDINGS, ".txt", ""]))
@pytest.mark.parametrize(
    "magic",
    [
        b"",
        b"#!AER-DAT2.0\r\n",
        b"#!AER-DAT2.0\r\n# AEChip: DAVIS346B\r\n",
        b"#!AER-DAT3.1\r\n#!END-HEADER\r\n",
        b"#!AER-DAT4.0\r\n",
        b"% Data file containing CD events\n% Version 2\n\x0c\x08",
        b"\x93NUMPY\x01\x00",
        b"PK\x03\x04",
    ],
)
def test_fuzz_random_bytes(content, ending, magic, scratch):
    path = scratch / f"random{ending}"
    path.write_bytes(magic + content)
    assert_read_or_rejected(path)


def test_every_truncation_is_rejected_or_ends_between_events(format_name, writers, some_rows, scratch):
    written = writers.formats[format_name]
    content = written.write(some_rows)
    path = scratch / f"cut{written.ending}"
    missing = set()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        recording, message = read_or_message(path)
        if recording is None:
            assert message.startswith(str(path))
        else:
            rows = writers.rows(recording)
            assert rows == some_rows[: len(rows)]
            missing.add(len(some_rows) - len(rows))
    # Without a stated length nobody can know that whole events are missing; AEDAT 4 can spare the table at its end.
    if format_name in ("dvs128", "davis240", "nmnist", "prophesee"):
        assert missing == {1, 2, 3, 4, 5, 6}
    elif format_name == "aedat3":  # in packets of three
        assert missing == {1, 4}
    else:
        assert missing <= ({0} if format_name.startswith("aedat4") else set())


def test_cut_in_mid_event_names_the_byte(writers, some_rows, read):
    for name in ("dvs128", "davis240", "nmnist", "prophesee"):
        written = writers.formats[name]
        content = written.write(some_rows)[:-2]
        with mistake(FileError, 6, reason="truncated", at=len(content)):
            read(content, f"cut{written.ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_empty_file(ending, read):
    with mistake(FileError, 0, reason="empty"):
        read(b"", f"sample{ending}")


@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending != ".bin"])
def test_wrong_magic(ending, read):
    with mistake(FileError, reason="damaged" if ending == ".npz" else "foreign"):
        read(b"this is no event file at all", f"sample{ending}")


def test_no_known_format(read):
    with mistake(FileError, *ENDINGS, reason="foreign"):
        read(b"class,startTime_usec\n", "labels.csv")


def test_folder_and_missing_file(tmp_path):
    with file_error(tmp_path, "foreign"):
        read_recording(tmp_path)
    with mistake(FileNotFoundError, tmp_path / "missing.aedat"):
        read_recording(tmp_path / "missing.aedat")


def test_no_events(format_name, writers, some_rows, read):
    # N-MNIST has no header; a file of nothing but an overflow of the clock comes nearest.
    content = b"\0\xf0\0\0\0" if format_name == "nmnist" else writers.formats[format_name].write([])
    with mistake(FileError, reason="empty"):
        read(content, f"none{writers.formats[format_name].ending}")


def test_time_running_backwards(format_name, writers, some_rows, read):
    rows = [*some_rows[:4], (18, 1, 1, 1), *some_rows[4:]]
    with mistake(FileError, 19, 18, reason="damaged", at=4):
        read(writers.formats[format_name].write(rows), f"back{writers.formats[format_name].ending}")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("davis240", (20, 3, -5, 1)),  # row 184 of 180, counted from the bottom
        ("aedat3", (20, 128, 3, 1)),
        ("aedat4", (20, 3, 240, 1)),
        ("aedat4", (20, -1, 3, 1)),
        ("nmnist", (20, 34, 3, 1)),
        ("prophesee", (20, 640, 3, 1)),
        ("npy", (20, 1280, 3, 1)),
        ("npz", (20, 3, 720, 1)),
    ],
)
def test_outside_the_sensor(name, row, writers, some_rows, read):
    rows = [*some_rows[:4], row, *some_rows[4:]]
    with mistake(FileError, reason="damaged", at=4):
        read(writers.formats[name].write(rows), f"outside{writers.formats[name].ending}")


def test_absurd_lengths_allocate_nothing(writers, some_rows, read):
    absurd = {
        "packet.aedat": writers.aedat3(b"\1\0\1\0\x08\0\0\0\4\0\0\0\0\0\0\0" + b"\xff\xff\xff\x7f" * 3),
        "packet.aedat4": writers.aedat4_header() + b"\0\0\0\0\xff\xff\xff\x7f" + bytes(100),
        "vector.aedat4": writers.aedat4_header() + writers.aedat4_packet(writers.aedat4_events(some_rows, count=2**31)),
        "shape.npy": writers.formats["npy"].write(some_rows).replace(b"(7,)", b"(9999999999,)", 1),
        "shape.npz": writers.formats["npz"].write(some_rows).replace(b"(7,)", b"(9999999999,)"),
    }
    for name, content in absurd.items():
        tracemalloc.start()
        with mistake(FileError) as caught:
            read(content, name)
        assert caught.value.path.name == name
        assert tracemalloc.get_traced_memory()[1] < 2**20, name
        tracemalloc.stop()


# What the readers' docstrings say: so many bytes of memory for each of the file, and so many for each event.
MEMORY = {
    "dvs128": (8, 0),
    "davis240": (8, 0),
    "aedat3": (16, 0),
    "aedat4": (8, 0),
    "nmnist": (16, 0),
    "prophesee": (8, 0),
    "npy": (2, 16),
    "npz": (2, 16),
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_follows_the_size_of_the_file(name, writers, scratch):
    written = writers.formats[name]
    content = written.write([(100 * number, number % 34, 7, 1) for number in range(30_000)])
    path = scratch / f"many{written.ending}"
    path.write_bytes(content)
    read_recording(path)  # what is imported late is not the file's
    tracemalloc.start()
    assert len(read_recording(path).x) == 30_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    per_byte, per_event = MEMORY[name]
    assert peak < per_byte * len(content) + per_event * 30_000 + 100_000


def recording(time_us: list[int], x: list[int], y: list[int]) -> Recording:
    return Recording(
        np.array(time_us, np.int64), np.array(x, np.int16), np.array(y, np.int16), np.ones(len(x), bool), (4, 6)
    )


def test_a_good_one_comes_back() -> None:
    good = recording([1, 1, 2], [0, 5, 3], [0, 3, 1])
    assert check(good, Path("good.aedat")) is good


@pytest.mark.parametrize(
    ("bad", "reason", "at", "shown"),
    [
        (recording([], [], []), "empty", None, ()),
        (
            recording([1, 2], [0, 6], [0, 0]),
            "damaged",
            1,
            (6, 0),
        ),
        (recording([1, 2], [0, 0], [0, 4]), "damaged", 1, (0, 4)),
        (recording([1, 2], [-1, 0], [0, 0]), "damaged", 0, (-1,)),
        (recording([1, 5, 4], [0, 0, 0], [0, 0, 0]), "damaged", 2, (5, 4)),
    ],
)
def test_a_bad_one_is_named(bad: Recording, reason: str, at: int | None, shown: tuple[int, ...]) -> None:
    with file_error("bad.aedat", reason, *shown, at=at):
        check(bad, Path("bad.aedat"))
