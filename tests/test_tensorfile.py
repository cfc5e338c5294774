"""Safetensors files: as the library writes them but the same each time, and never trusted when they are read."""

import hashlib
import json
import os
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save
from tests.limits import run_limited
from tests.mistakes import file_error

from spikformer.tensorfile import LONGEST_HEADER, open_tensors, with_code, write_tensors

DTYPES = ["bool", "u1", "i1", "i2", "u2", "f2", "i4", "u4", "f4", "f8", "i8", "u8"]
ARRAYS = {f"{'abc'[n % 3]}.{n}": np.arange(n + 1).astype(dtype) for n, dtype in enumerate(DTYPES)}
ARRAYS |= {"scalar": np.array(1.5), "empty": np.empty((0, 3), np.float32), "matrix": np.arange(6.0).reshape(2, 3)}


def write(path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> Path:
    write_tensors(path, {name: with_code(array) for name, array in arrays.items()}, metadata)
    return path


def raw(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_the_library_writes_the_same_bytes_and_reads_ours(tmp_path: Path) -> None:
    path = write(tmp_path / "file", ARRAYS, {"key": "value"})
    assert path.read_bytes() == save(ARRAYS, {"key": "value"})  # with one key, its order is no choice
    assert load_file(path).keys() == ARRAYS.keys()


def test_what_is_written_is_read_into_memory_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "file", ARRAYS, {"key": "välue", "another": ""})
    with open_tensors(path) as file:
        assert file.metadata == {"another": "", "key": "välue"}
        read = {name: file.read_numpy(name) for name in file.entries}
    assert read.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()
        assert read[name].flags.owndata
        assert read[name].flags.writeable


def test_neither_the_order_of_tensors_nor_that_of_metadata_is_in_the_file(tmp_path: Path) -> None:
    metadata = {f"key {n}": str(n) for n in range(20)}
    one = write(tmp_path / "one", ARRAYS, metadata).read_bytes()
    for name, backwards in (("two", False), ("three", True)):
        arrays = dict(sorted(ARRAYS.items(), reverse=backwards))
        order = dict(sorted(metadata.items(), reverse=backwards))
        assert write(tmp_path / name, arrays, order).read_bytes() == one


REPEATED = """
import hashlib, sys
from pathlib import Path
import numpy as np
from spikformer.tensorfile import with_code, write_tensors
names = {"a", "b", "c", "d", "e", "f"}
path = Path(sys.argv[1])
write_tensors(path, {name: with_code(np.full(3, ord(name))) for name in names}, {name: name for name in names})
print(hashlib.sha256(path.read_bytes()).hexdigest())
"""


def test_it_does_not_depend_on_the_seed_of_hashes(tmp_path: Path) -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", REPEATED, str(tmp_path / "file")],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1


def test_the_data_of_every_tensor_is_aligned_in_the_file(tmp_path: Path) -> None:
    for length in range(9):
        path = write(tmp_path / "file", ARRAYS, {"key": "x" * length})
        with open_tensors(path) as file:
            start = path.stat().st_size - max(entry.end for entry in file.entries.values())
            assert start % 8 == 0
            for name, entry in file.entries.items():
                assert (start + entry.begin) % ARRAYS[name].itemsize == 0


def test_writing_copies_nothing(tmp_path: Path) -> None:
    imports = "import sys; from pathlib import Path; import numpy as np; from spikformer.tensorfile import *"
    code = "write_tensors(Path(sys.argv[1]), {str(n): with_code(np.zeros(1 << 23)) for n in range(2)}, {})"
    done = run_limited(imports, code, tmp_path / "file", megabytes=128 + 24)  # two tensors of 64 MB
    assert done.exit_code == 0, done.errors
    assert (tmp_path / "file").stat().st_size > 1 << 27


def test_a_header_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    with file_error(tmp_path / "file", "too_large", f"{LONGEST_HEADER:,}"):
        write(tmp_path / "file", {}, {"key": "x" * LONGEST_HEADER})
    assert os.listdir(tmp_path) == []


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
BAD_HEADERS = {
    "empty": b"",
    "no JSON": b"{]",
    "no UTF-8": b'{"\xff": 1}',
    "list": [],
    "metadata": {"__metadata__": 7},
    "metadata value": {"__metadata__": {"a": 1}},
    "entry": {"a": 7},
    "missing": {"a": {"dtype": "F32", "shape": [1]}},
    "more": {"a": ONE | {"more": 1}},
    "dtype": {"a": ONE | {"dtype": "F99"}},
    "dtype that nobody has": {"a": ONE | {"dtype": "F8_E4M3", "shape": [4]}},
    "dtype list": {"a": ONE | {"dtype": []}},
    "shape": {"a": ONE | {"shape": 1}},
    "negative": {"a": ONE | {"shape": [-1]}},
    "flag": {"a": ONE | {"shape": [True]}},
    "float": {"a": ONE | {"shape": [1.0]}},
    "axes": {"a": ONE | {"shape": [1] * 100}},
    "overflow": {"a": ONE | {"shape": [0, 2**40, 2**40], "data_offsets": [0, 0]}},
    "digits": b'{"a": {"dtype": "F32", "shape": [1' + b"0" * 4000 + b'], "data_offsets": [0, 4]}}',
    "more digits": b'{"a": {"dtype": "F32", "shape": [1' + b"0" * 400_000 + b'], "data_offsets": [0, 4]}}',
    "size": {"a": ONE | {"shape": [2]}},
    "gap": {"a": ONE, "b": ONE | {"data_offsets": [8, 12]}},
    "overlap": {"a": ONE, "b": ONE},
    "beyond": {"a": ONE | {"shape": [2], "data_offsets": [0, 8]}},
    "before": {"a": ONE | {"data_offsets": [-4, 0]}},
    "rest": {},
    "twice": b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, '
    b'"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
    "deep": b"[" * 200_000,
}


@pytest.mark.parametrize("header", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_bad_header_is_an_error_that_names_the_file(tmp_path: Path, header: Any) -> None:
    path = raw(tmp_path / "bad.safetensors", header, bytes(4))
    with file_error(path) as error, open_tensors(path):
        pass
    assert len(str(error.value)) < 500 + len(str(path))


def test_a_message_holds_no_control_characters_and_ends_soon(tmp_path: Path) -> None:
    name = "\x1b[31m\x9b\ud800\n" + "long" * 10_000
    path = raw(tmp_path / "bad.safetensors", {name: ONE | {"dtype": "\x1b" * 1000}}, bytes(4))
    with file_error(path) as error, open_tensors(path):
        pass
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 600 + len(str(path))


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "file", {"a": np.zeros(100_000)}, {})
    with open_tensors(path) as file:
        os.truncate(path, 1000)
        with file_error(path, "truncated"):
            file.read_numpy("a")


def bomb(kind: str, path: Path) -> Path:
    """A file that would take much memory or time if its numbers were believed, or its header read whatever its size."""
    if kind == "header length":  # of a gigabyte, in a file that takes no room on disk
        path.write_bytes(struct.pack("<Q", 1 << 30))
        os.truncate(path, 1 << 31)
        return path
    if kind == "tensors":  # as many as fit
        row = b'"%06d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
        rows = b"".join(row % number for number in range(LONGEST_HEADER // (len(row % 0)) - 1))
        return raw(path, b"{" + rows[:-1] + b"}")
    if kind == "lists":
        return raw(path, b'{"a":[' + b"[]," * (LONGEST_HEADER // 3 - 10) + b"0]}")
    if kind == "digits":
        return raw(path, b'{"a":' + b"9" * (LONGEST_HEADER - 10) + b"}")
    assert kind == "metadata", kind
    text = json.dumps({"__metadata__": {"config": "[" + "[]," * (LONGEST_HEADER // 3 - 100) + "0]"}})
    return raw(path, text.encode())


READ = """
with suppress(ValueError):
    with open_tensors(Path(sys.argv[1])) as file:
        print(len(file.entries))
        file.json("config", dict)
"""


@pytest.mark.parametrize("kind", ["header length", "tensors", "lists", "digits", "metadata"])
def test_a_bomb_takes_little_memory_and_time(tmp_path: Path, kind: str) -> None:
    imports = "import sys; from contextlib import suppress; from pathlib import Path\n"
    imports += "from spikformer.tensorfile import open_tensors"
    done = run_limited(imports, READ, bomb(kind, tmp_path / "bomb"), megabytes=50 * (LONGEST_HEADER >> 20), seconds=20)
    assert done.exit_code == 0, done.errors
    assert (done.output != "") == (kind in ("tensors", "metadata")), "others fail before anything is known of tensors"


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    path = write(tmp_path / "whole", ARRAYS, {"key": "value"})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content))) :]
    path = tmp_path / "damaged"
    path.write_bytes(content)
    with suppress(ValueError), open_tensors(path) as file:
        assert sum(file.read_numpy(name).nbytes for name in file.entries) < len(content)


def test_the_same_tensors_have_the_same_checksum(tmp_path: Path) -> None:
    """On every machine: a change of the format is a change of its version."""
    content = write(tmp_path / "file", ARRAYS, {"key": "value"}).read_bytes()
    assert hashlib.sha256(content).hexdigest() == "356fd30518b82d36bef0763cff33942d4810d000c6785a3522cd318c327bf525"
