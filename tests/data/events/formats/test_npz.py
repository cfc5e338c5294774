"""Archives of columns, as SpikingJelly writes them, against np.load."""

import io
import zipfile

import numpy as np
import pytest

pytestmark = pytest.mark.core


def saved(**arrays) -> bytes:
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
    recording = read(saved(size=[48, 64], label=np.array(["cat"])), "a.npz")
    assert recording.size == (48, 64)
    assert writers.rows(recording) == [(1, 3, 5, 0), (2, 4, 6, 1)]
    with pytest.raises(ValueError, match="outside the sensor of 4 columns"):
        read(saved(size=[9, 4]), "a.npz")


def test_python_objects_are_not_loaded(read):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was executed",))

    with pytest.raises(ValueError, match="array x holds Python objects, which could carry code"):
        read(saved(x=np.array([Trap(), 1], object)), "a.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"t": [1, 2, 3]}, "columns of different lengths: {'t': 3, 'x': 2"),
        ({"t": [0.1, 0.2]}, "column t is of type float64"),
        ({"x": [[3, 4]]}, r"array x has shape \(1, 2\)"),
        ({"size": [1, 2, 3]}, "size of 3"),
        ({"size": [-1, 2]}, "2 columns and -1 rows"),
        ({"p": np.zeros(2, [("a", "i1")])}, "column p is of type"),
    ],
)
def test_arrays_that_are_no_events(arrays, message, read):
    with pytest.raises(ValueError, match=message):
        read(saved(**arrays), "a.npz")


def test_missing_arrays(read):
    file = io.BytesIO()
    np.savez(file, frames=np.zeros((2, 3)), t=[1])
    with pytest.raises(ValueError, match="lacks the arrays x, y, p; expected t, x, y and p"):
        read(file.getvalue(), "a.npz")


def test_damaged_archives(writers, some_rows, read):
    content = bytearray(writers.formats["npz"].write(some_rows))
    for cut in (30, 300, len(content) - 1):
        with pytest.raises(ValueError, match="damaged or not a NumPy archive"):
            read(content[:cut], "a.npz")
    content[content.index(b"\x93NUMPY") + 130] ^= 1  # in the data, where only the checksum tells
    with pytest.raises(ValueError, match="Bad CRC-32"):
        read(content, "a.npz")


def test_other_files_in_the_archive_are_not_touched(read):
    file = io.BytesIO(saved())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("../../escape.txt", "no")
    assert len(read(file.getvalue(), "a.npz").x) == 2
