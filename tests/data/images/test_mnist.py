"""IDX files: every type comes back as it was written; everything else is refused before it costs memory."""

import gzip
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spikformer.data.images.mnist import read_idx

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes([0, 0, CODES[array.dtype.str[1:]], array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
VALID = idx_bytes(IMAGES)
PACKED = gzip.compress(VALID, mtime=0)  # a time stamp would make every run a test of another name


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("shape", [(7,), (2, 3, 4), (1, 1, 1, 1)])
def test_what_is_written_comes_back(dtype: str, shape, compress, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(0, 60, shape).clip(0, 127).astype(dtype)
    path = tmp_path / "t10k-images-idx3-ubyte"  # no ending tells whether it is compressed
    path.write_bytes(compress(idx_bytes(values)))
    array = read_idx(path)
    np.testing.assert_array_equal(array, values)
    assert array.dtype == np.dtype(dtype)
    assert array.dtype.isnative
    array[...] = 0  # free to be written to


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has 0 bytes, too few for an IDX file"),
        (b"\0\0\x08", "has 3 bytes, too few"),
        (b"GIF89a..", "not an IDX file: it starts with 47 49 46 38, expected 00 00, then one of 08, 09"),
        (b"\0\0\x0a\x01" + bytes(8), "not an IDX file: it starts with 00 00 0a 01"),
        (b"\0\0\x08\0" + bytes(8), "announces 0 axes in byte 3, expected 1 to 8"),
        (b"\0\0\x08\xff" + b"\0\0\0\1" * 255, "announces 255 axes"),
        (VALID[:10], "ends in its header, before the lengths of its 3 axes"),
        (idx_bytes(np.empty((0, 3), np.uint8)), "announces 0×3 values: it holds nothing"),
        (VALID[:-1], "announces 2×3×4 values in 24 bytes and holds 23; it is damaged or cut short"),
        (VALID + b"\0", "in 24 bytes and holds more"),
        (b"\0\0\x0e\x03" + b"\xff" * 12, "and holds 0"),
        (PACKED[:-9], "is damaged or cut short after"),
        (PACKED[:-8] + bytes(8), "is damaged or cut short after"),
        (b"\x1f\x8bnonsense, not gzip", "is damaged or cut short after 0 unpacked bytes"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_idx(tmp_path / "none")
    with pytest.raises(ValueError, match="is a folder, expected a file"):
        read_idx(tmp_path)


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_forged_header_costs_no_memory(compress, tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(compress(b"\0\0\x0e\x02" + b"\x7f\xff\xff\xff" * 2 + bytes(1000)))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="holds 1000"):
            read_idx(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "images"


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda rest: b"\0\0\x08" + rest), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_refused_or_read(scratch: Path, content: bytes, compressed: bool) -> None:
    scratch.write_bytes(gzip.compress(content) if compressed else content)
    with suppress(ValueError):
        assert read_idx(scratch).size > 0


@given(st.data(), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_file_is_refused_or_read(scratch: Path, data: st.DataObject, compressed: bool) -> None:
    content = bytearray(PACKED if compressed else VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    scratch.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(ValueError):
        assert read_idx(scratch).size > 0
