"""CIFAR's pickles are read; a pickle that wants anything else is rejected by name, and nothing in it ever runs."""

import io
import os
import pickle
import struct
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.mistakes import file_error, mistake

from spikformer.data.images.cifar import read_pickle
from spikformer.errors import FileError

BATCH = {"labels": [3, 255, 256, 9], "data": np.arange(4 * 5, dtype=np.uint8).reshape(4, 5), "batch_label": "one"}


def equal(left: Any, right: Any) -> bool:
    """Same keys and values; text may have come as bytes."""
    plain = {key: value.decode() if isinstance(value, bytes) else value for key, value in left.items()}
    return plain.keys() == right.keys() and all(np.array_equal(plain[key], right[key]) for key in right)


def test_a_pickle_of_python_2_is_read(python2_pickle) -> None:
    assert equal(read_pickle(python2_pickle(BATCH), "batch"), BATCH)


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("keys", [str, str.encode], ids=["text", "bytes"])
def test_a_batch_saved_again_by_python_3_is_read(protocol: int, keys: Callable[[str], Any]) -> None:
    content = pickle.dumps({keys(key): value for key, value in BATCH.items()}, protocol)
    assert equal(read_pickle(content, "batch"), BATCH)


def test_many_memo_entries_and_long_lists_are_read() -> None:
    values = {"filenames": [f"{number}.png" for number in range(70_000)], "labels": list(range(3000))}
    assert read_pickle(pickle.dumps(values, 2), "batch") == values


class Runs:
    """A pickle that calls something when it is unpickled."""

    def __init__(self, function: Callable, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("function", [os.system, eval, subprocess.check_output], ids=lambda function: function.__name__)
def test_code_is_rejected_by_name_and_never_runs(function: Callable, protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    arguments = {
        os.system: f"touch {marker}",
        eval: f"__import__('pathlib').Path({str(marker)!r}).touch()",
        subprocess.check_output: ["touch", str(marker)],
    }
    content = pickle.dumps({"labels": Runs(function, arguments[function])}, protocol)
    with file_error("batch", "unsafe") as caught:
        read_pickle(content, "batch")
    if protocol >= 2:  # older ones consist of other instructions, and fail at the first of them
        assert f".{function.__name__}'" in str(caught.value)
    assert not marker.exists()
    pickle.loads(content)  # the code is real: Python's own unpickler does run it
    assert marker.exists()


@pytest.mark.parametrize(
    ("content", "reason", "shown", "at"),
    [
        (b"cos\nsystem\n(U\x04trueR.", "unsafe", "os.system", 11),  # the call itself is not even reached
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "unsafe", "os.system", 15),
        (b"cnumpy\nload\n.", "unsafe", "numpy.load", 12),
        (b"cnumpy.core.multiarray\nscalar\n.", "unsafe", "numpy.core.multiarray.scalar", 30),
        (b"(S'true'\nios\nsystem\n.", "unsafe", "STRING", 2),
        (b"(U\x04trueios\nsystem\n.", "unsafe", "INST", 8),
        (b"(cos\nsystem\nU\x04trueo.", "unsafe", "os.system", 12),
        (b"\x80\x02cnumpy\nndarray\nN\x85\x81.", "damaged", "", 20),
        (b"Pid\n.", "unsafe", "PERSID", 1),
        (b"\x80\x02\x82\x01.", "unsafe", "EXT1", 4),
        (b"\x80\x02cnumpy\ndtype\nU\x01OK\x00K\x01\x87R.", "unsafe", "uint8", 24),
        (b"\x80\x02cnumpy\nndarray\n}U\x01aU\x01bsb.", "damaged", "BUILD", 26),
        (b"\x80\x02cnumpy\nndarray\n.", "damaged", "", 18),
        (b"\x80\x02cnumpy\nndarray\nN\x85R.", "damaged", "", 20),
        (b"\x80\x02U\x04trueN\x85R.", "damaged", "str", 11),
        (b"\x80\x02c_codecs\nencode\nU\x01aU\x03rot\x86R.", "damaged", "", 28),
        (b"\x80\x02}}Ns.", "damaged", "dict", 6),
        (b"\x80\x02Na.", "damaged", "", 4),
        (b"\x80\x02h\x05.", "damaged", "", 4),
        (b"\x80\x02", "damaged", "", 2),
        (b"", "damaged", "", 0),
        (b"\xc3\xbc", "damaged", "", 1),
        (b"\x80\x02c\\d\nx\n.", "unsafe", "\\d.x", 8),  # pickletools would warn of the backslash
    ],
)
def test_a_forged_pickle_is_an_error(content: bytes, reason: str, shown: str, at: int) -> None:
    with file_error("data_batch_1", reason, shown, at=at):
        read_pickle(content, "data_batch_1")


def test_an_array_must_have_the_bytes_of_its_shape(python2_pickle) -> None:
    content = python2_pickle(BATCH)
    shape = b"M\x04\x00M\x05\x00\x86"
    assert content.count(shape) == 1
    for other in (
        b"M\x05\x00M\x05\x00\x86",
        b"M\x00\x00M\x05\x00\x86",
        b"J\xff\xff\xff\xffM\x05\x00\x86",
        b"M\x14\x00\x85",
    ):
        with file_error("batch"):
            read_pickle(content.replace(shape, other), "batch")


def test_an_array_in_another_order_or_type_is_rejected() -> None:
    for array in (np.asfortranarray(BATCH["data"]), BATCH["data"].astype(np.int8), np.array([[None, "x"]])):
        with mistake(FileError, path=Path("batch")):
            read_pickle(pickle.dumps({"data": array}, 2), "batch")


def test_what_ends_or_bloats_pythons_own_unpickler_does_neither_here() -> None:
    nested_key = b"\x80\x02}N" + b"\x85" * 300_000 + b"Ns."
    with file_error("batch", "damaged", "tuple"):
        read_pickle(nested_key, "batch")
    assert read_pickle(b"\x80\x02Nr\xff\xff\xff\xff.", "batch") is None
    with file_error("batch", "damaged", 1 << 60, 5):
        read_pickle(b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b"short", "batch")


@pytest.mark.slow
def test_repeating_a_call_or_an_instruction_takes_no_memory() -> None:
    """Text of 1 MB that is encoded 50,000 times; and more instructions than any file of CIFAR's has."""
    text = b"X" + struct.pack("<I", 10**6) + b"x" * 10**6 + b"q\1"
    content = b"\x80\x02]c_codecs\nencode\nq\0" + text + b"X\x06\0\0\0latin1\x86q\2Ra"
    content += 50_000 * b"h\0h\2Ra" + b"."
    tracemalloc.start()
    assert len(read_pickle(content, "batch")) == 50_001
    with file_error("batch", "unsafe", 1 << 20):
        read_pickle(b"]" * 2_000_000, "batch")
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()


def outcome_of(content: bytes) -> str:
    """The error message of a pickle, or "batch" if it was read; any other exception fails the test."""
    try:
        read_pickle(content, "batch")
    except ValueError as error:
        return str(error)
    return "batch"


@pytest.fixture(scope="module")
def valid(python2_pickle) -> list[bytes]:
    return [python2_pickle(BATCH), pickle.dumps(BATCH, 2), pickle.dumps(BATCH, 4)]


@given(st.data())
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_pickle_is_rejected_or_read(valid: list[bytes], data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(valid)))
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["set", "insert", "delete", "repeat"]))
        if kind == "set":
            content[place] = data.draw(st.integers(0, 255))
        elif kind == "insert":
            content[place:place] = data.draw(
                st.binary(max_size=6) | st.sampled_from([b"R", b"b", b"(", b"cos\nsystem\n"])
            )
        elif kind == "delete" and len(content) > 8:
            del content[place : place + data.draw(st.integers(1, 4))]
        else:
            content[place:place] = content[max(0, place - 20) : place]
    assert "batch" in outcome_of(bytes(content))


@given(st.binary(max_size=80))
@example(b"\x80\x02]q\x00h\x00a.")  # a list that holds itself
@settings(max_examples=300, deadline=None)
def test_garbage_is_rejected_or_read(content: bytes) -> None:
    assert "batch" in outcome_of(content)


def test_every_admitted_file_means_the_same_to_python(valid: list[bytes]) -> None:
    for content in valid[1:]:
        assert equal(read_pickle(content, "batch"), pickle.load(io.BytesIO(content)))
