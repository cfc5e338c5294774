"""Events in NumPy's formats, from those who write them and from attackers."""

import io
import zipfile

import numpy as np
import pytest
from tests.mistakes import mistake

from spikformer.errors import FileError

pytestmark = pytest.mark.core


INTEGERS = {"t": "<i8", "x": "<i2", "y": "<i2", "p": "u1"}


def saved(array: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize("order", ["txyp", "xytp", "pyxt"])
def test_fields_in_any_order_match_np_load(order, some_rows, read):
    array = np.zeros(len(some_rows), [(name, INTEGERS[name]) for name in order])
    for i, name in enumerate("txyp"):
        array[name] = [row[i] for row in some_rows]
    content = saved(array)
    recording, loaded = read(content, "a.npy"), np.load(io.BytesIO(content))
    for column, name in zip(recording[:4], "txyp", strict=True):
        assert np.array_equal(column, loaded[name])


@pytest.mark.parametrize("types", ["<u8 <u2 <u2 ?", ">i4 >u4 >i8 i1", "<i8 <i8 <i8 <i8"])
def test_any_integers(types, writers, some_rows, read):
    dtype = list(zip("txyp", types.split(), strict=True))
    assert writers.rows(read(saved(np.array(some_rows, dtype)), "a.npy")) == some_rows


def test_minus_one_is_off(read):
    array = np.array([(1, 2, 3, -1), (2, 2, 3, 1)], [("t", "i8"), ("x", "i2"), ("y", "i2"), ("p", "i1")])
    assert read(saved(array), "a.npy").on.tolist() == [False, True]


@pytest.mark.parametrize(
    ("coordinate", "size"), [(33, (34, 34)), (34, (128, 128)), (128, (180, 240)), (479, (480, 640)), (719, (720, 1280))]
)
def test_smallest_usual_sensor(coordinate, size, read):
    array = np.array([(1, coordinate, coordinate, 1)], list(INTEGERS.items()))
    assert read(saved(array), "a.npy").size == size


def test_python_objects_are_not_loaded(read):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was executed",))

    for array in (np.array([Trap()], object), np.array([(Trap(),)], [("t", object)])):
        with mistake(FileError, reason="unsafe"):
            read(saved(array, allow_pickle=True), "a.npy")


@pytest.mark.parametrize(
    ("array", "reason", "at", "shown"),
    [
        (np.zeros(3, [("t", "i8"), ("x", "i2")]), "damaged", "y", "y, p"),
        (np.zeros(3, "i8"), "damaged", "t", "t, x, y, p"),
        (np.zeros((3, 4)), "foreign", None, "(3, 4)"),
        (np.zeros((), "i8"), "foreign", None, "()"),
        (np.zeros(3, [("t", "f8"), ("x", "i2"), ("y", "i2"), ("p", "i1")]), "damaged", "t", "float64"),
        (np.zeros(3, [("t", "i8"), ("x", "i2", 2), ("y", "i2"), ("p", "i1")]), "damaged", "x", "int16"),
        (np.array([(1, 2, 3, 7)], list(INTEGERS.items())), "damaged", 0, "p = 7"),
        (np.array([(1, -2, 3, 1)], list(INTEGERS.items())), "damaged", 0, "x = -2"),
        (np.array([(1, 0, 0, 1), (2**63, 0, 0, 1)], [("t", "u8"), ("x", "i2"), ("y", "i2"), ("p", "?")]),
         "damaged", 1, 2**63),
        (np.array([(1, 0, 70000, 1)], [("t", "i8"), ("x", "i2"), ("y", "i8"), ("p", "?")]), "damaged", 0, 70000),
    ],
)  # fmt: skip
def test_arrays_that_are_no_events(array, reason, at, shown, read):
    with mistake(FileError, shown, reason=reason, at=at):
        read(saved(array), "a.npy")


def test_bad_array_headers(writers, some_rows, read):
    content = writers.formats["npy"].write(some_rows)
    for damaged in (
        content[:40],
        content.replace(b"\x93NUMPY\x01", b"\x93NUMPY\x07"),
        content.replace(b"'shape'", b"'shade'"),
        content.replace(b"(7,)", b"(7,("),
        content.replace(b"'<i2'", b"'<q9'"),
    ):
        with mistake(FileError, reason="damaged"):
            read(damaged, "a.npy")
    with mistake(FileError, 3, 119, reason="truncated"):
        read(content[: 3 - 119], "a.npy")
    with mistake(FileError, "(-7,)", reason="foreign"):
        read(content.replace(b"(7,), ", b"(-7,),"), "a.npy")
    with mistake(FileError, reason="truncated"):
        read(content.replace(b"(7,), }" + b" " * 30, b"(9" + b"9" * 30 + b",), }"), "a.npy")


def saved_archive(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{"t": [1, 2], "x": [3, 4], "y": [5, 6], "p": [0, 1], **arrays})
    return file.getvalue()


@pytest.mark.parametrize("name", ["npz", "npz_compressed"])
def test_matches_np_load(name, writers, some_rows, read):
    content = writers.formats[name].write(some_rows)
    recording, loaded = read(content, "a.npz"), np.load(io.BytesIO(content), allow_pickle=False)
    for column, name in zip(recording[:4], "txyp", strict=True):
        assert np.array_equal(column, loaded[name])


def test_stated_size_and_other_arrays(writers, read):
    recording = read(saved_archive(size=[48, 64], label=np.array(["cat"])), "a.npz")
    assert recording.size == (48, 64)
    assert writers.rows(recording) == [(1, 3, 5, 0), (2, 4, 6, 1)]
    with mistake(FileError, 4, 9, at=1):
        read(saved_archive(size=[9, 4]), "a.npz")


def test_python_objects_in_an_archive_are_not_loaded(read):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was executed",))

    with mistake(FileError, reason="unsafe", at="x"):
        read(saved_archive(x=np.array([Trap(), 1], object)), "a.npz")


@pytest.mark.parametrize(
    ("arrays", "reason", "at", "shown"),
    [
        ({"t": [1, 2, 3]}, "unfit", None, "{'t': 3, 'x': 2"),
        ({"t": [0.1, 0.2]}, "damaged", "t", "float64"),
        ({"x": [[3, 4]]}, "foreign", "x", "(1, 2)"),
        ({"size": [1, 2, 3]}, "damaged", "size", 3),
        ({"size": [-1, 2]}, "damaged", "sensor", -1),
        ({"p": np.zeros(2, [("a", "i1")])}, "damaged", "p", ""),
    ],
)
def test_archives_that_are_no_events(arrays, reason, at, shown, read):
    with mistake(FileError, shown, reason=reason, at=at):
        read(saved_archive(**arrays), "a.npz")


def test_missing_arrays(read):
    file = io.BytesIO()
    np.savez(file, frames=np.zeros((2, 3)), t=[1])
    with mistake(FileError, "x, y, p", reason="damaged", at="x"):
        read(file.getvalue(), "a.npz")


def test_damaged_archives(writers, some_rows, read):
    content = bytearray(writers.formats["npz"].write(some_rows))
    for cut in (30, 300, len(content) - 1):
        with mistake(FileError, reason="damaged"):
            read(content[:cut], "a.npz")
    content[content.index(b"\x93NUMPY") + 130] ^= 1  # in the data, where only the checksum tells
    with mistake(FileError, "CRC-32", reason="damaged"):
        read(content, "a.npz")


def test_other_files_in_the_archive_are_not_touched(read):
    file = io.BytesIO(saved_archive())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("../../escape.txt", "no")
    assert len(read(file.getvalue(), "a.npz").x) == 2
