"""IDX files: every type comes back as it was written; everything else is rejected before it costs memory."""

import gzip
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.mistakes import file_error, mistake

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
    ("content", "reason", "shown"),
    [
        (b"", "truncated", 0),
        (b"\0\0\x08", "truncated", 3),
        (b"GIF89a..", "foreign", "47 49 46 38"),
        (b"\0\0\x0a\x01" + bytes(8), "foreign", "00 00 0a 01"),
        (b"\0\0\x08\0" + bytes(8), "damaged", 0),
        (b"\0\0\x08\xff" + b"\0\0\0\1" * 255, "damaged", 255),
        (VALID[:10], "truncated", 3),
        (idx_bytes(np.empty((0, 3), np.uint8)), "empty", "0×3"),
        (VALID[:-1], "truncated", 23),
        (VALID + b"\0", "truncated", 24),
        (b"\0\0\x0e\x03" + b"\xff" * 12, "truncated", 0),
        (PACKED[:-9], "damaged", ""),
        (PACKED[:-8] + bytes(8), "damaged", ""),
        (b"\x1f\x8bnonsense, not gzip", "damaged", 0),
    ],
)
def test_a_wrong_file_is_an_error(content: bytes, reason: str, shown: object, tmp_path: Path) -> None:
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(content)
    with file_error(path, reason, shown):
        read_idx(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with mistake(FileNotFoundError, tmp_path / "none"):
        read_idx(tmp_path / "none")
    with file_error(tmp_path, "foreign"):
        read_idx(tmp_path)


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_forged_header_costs_no_memory(compress, tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(compress(b"\0\0\x0e\x02" + b"\x7f\xff\xff\xff" * 2 + bytes(1000)))
    tracemalloc.start()
    try:
        with file_error(path, "truncated", 1000):
            read_idx(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "images"


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda rest: b"\0\0\x08" + rest), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_rejected_or_read(scratch: Path, content: bytes, compressed: bool) -> None:
    scratch.write_bytes(gzip.compress(content) if compressed else content)
    with suppress(ValueError):
        assert read_idx(scratch).size > 0


@given(st.data(), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_file_is_rejected_or_read(scratch: Path, data: st.DataObject, compressed: bool) -> None:
    content = bytearray(PACKED if compressed else VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    scratch.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(ValueError):
        assert read_idx(scratch).size > 0
