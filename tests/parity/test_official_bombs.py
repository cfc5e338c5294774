"""Checkpoints that would take memory or time are reported before they do."""

import io
import json
import logging
import pickle
import re
import struct
import zipfile

import pytest
import torch
from tests.limits import run_limited

from spikformer.analysis.golden import GOLDEN_FOLDER, load_golden


@pytest.fixture(autouse=True)
def _quiet(caplog) -> None:
    caplog.set_level(logging.WARNING, "spikformer")


CHECKPOINT = GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar"
STATE = load_golden("cifar10").state


def repacked(method: int = zipfile.ZIP_STORED, change=lambda pickle: pickle, copies: int = 1, **state) -> bytes:
    """A checkpoint with its pickle changed, packed by a method; with its directory repeated."""
    made, file = io.BytesIO(), io.BytesIO()
    torch.save({**STATE, **state}, made)
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(file, "w", method) as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, change(content) if name.endswith("data.pkl") else content)
        target.filelist *= copies
    return file.getvalue()


def pickled(content: bytes, **parts: bytes) -> bytes:
    """A checkpoint with a pickle written by hand; `parts` are its storages."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("c/data.pkl", b"\x80\x02" + content)
        for key, values in parts.items():
            archive.writestr(f"c/data/{key}", values)
    return file.getvalue()


def directory(count: int) -> bytes:
    """Entries of 47 bytes, and nothing that they are about."""
    entries = count * (struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 0, 20, *[0] * 8, 1, *[0] * 6) + b"1")
    return entries + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entries), 0, 0)


NESTED = b"N" + b"\x85" * 400_000  # a tuple in a tuple in a tuple …
LEGACY = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, {}))
NUMBERED = b"}(" + b"".join(b"J" + struct.pack("<i", number) + b"N" for number in range(100_000)) + b"u"
EMPTY = b"ctorch._utils\n_rebuild_tensor_v2\n((U\7storagectorch\nFloatStorage\nU\1eU\3cpuK\0tQK\0(K\0t(K\1ttR"
ROW = torch.zeros(1_000_000)
ZEROS = {"block.0.extra": torch.zeros(40_000_000, dtype=torch.uint8)}
BOMBS = {
    "bytearray": lambda: repacked(change=lambda _: b"\x80\x02c__builtin__\nbytearray\n\x8a\5\0\0\0\0\2\x85R."),
    "bytearray of Python 3": lambda: b"\x80\x04cbuiltins\nbytearray\n\x8a\5\0\0\0\0\2\x85R.",
    "a long text": lambda: b"\x80\x02X\xff\xff\xff\xff" + bytes(100),
    "a longer text": lambda: repacked(change=lambda _: b"\x80\x04\x8d" + b"\xff" * 7 + b"\0" + bytes(100)),
    "a memo index": lambda: repacked(change=lambda _: b"\x80\x02Nr\xff\xff\xff\x7f."),
    "a nested key": lambda: repacked(change=lambda _: b"\x80\x02}N" + b"\x85" * 300_000 + b"Ns."),
    "a nested key of an OrderedDict": lambda: pickled(b"ccollections\nOrderedDict\n(]" + NESTED + b"K\1\x86atR."),
    "a nested key of a storage": lambda: LEGACY + b"\x80\2]" + NESTED + b"a.",
    "many copies of a dict": lambda: pickled(
        NUMBERED + b"q\0ccollections\nOrderedDict\nq\1](" + b"h\1h\0\x85R" * 200_000 + b"e."
    ),
    "many copies of arguments": lambda: pickled(
        b"(" + b"N" * 400_000 + b"tq\0ccollections\nCounter\nq\1](" + b"h\1h\0R" * 190_000 + b"e."
    ),
    "many copies of a namespace": lambda: pickled(
        NUMBERED + b"q\0cargparse\nNamespace\nq\1](" + b"h\1)Rh\0b" * 100_000 + b"e."
    ),
    "many copies of a key": lambda: pickled(
        b"B" + struct.pack("<I", 1_000_000) + b"k" * 1_000_000 + b"q\0](" + b"}h\0Ns" * 150_000 + b"e."
    ),
    "many empty tensors": lambda: pickled(
        EMPTY + b"q\0}(" + b"".join(b"J" + struct.pack("<i", number) + b"h\0" for number in range(480_000)) + b"u.",
        e=b"",
    ),
    "a long directory": lambda: directory(400_000),
    "many instructions": lambda: repacked(change=lambda _: b"\x80\x02" + b"}" * 3_000_000),
    "a packed storage": lambda: repacked(zipfile.ZIP_DEFLATED, **ZEROS),
    "a storage by bzip2": lambda: repacked(zipfile.ZIP_BZIP2, **ZEROS),
    "many views of one storage": lambda: repacked(**{f"view{n}": ROW.view(-1) for n in range(300)}),
    "a claimed storage": lambda: repacked(
        change=lambda data: re.sub(rb"K.(?=tq.Q)", lambda _: b"J\xff\xff\xff\x7f", data, count=1, flags=re.DOTALL)
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """What a child with 150 MB says to each of them, and how many seconds it took."""
    folder = tmp_path_factory.mktemp("bombs")
    for name, make in BOMBS.items():
        (folder / name).write_bytes(make())
    code = """
for path in sys.argv[1:]:
    start, message = time.process_time(), ""
    try:
        sf.from_official(path, num_heads=4)
    except ValueError as error:
        message = str(error)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    print(json.dumps([message, time.process_time() - start]))
"""
    imports = f"import json, sys, time; import spikformer as sf; sf.from_official({str(CHECKPOINT)!r}, num_heads=4)"
    outcome = run_limited(imports, code, *(folder / name for name in BOMBS), megabytes=150, seconds=120)
    assert outcome.exit_code == 0, outcome.errors
    return dict(zip(BOMBS, map(json.loads, outcome.output.splitlines()), strict=True))


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_reported_before_it_goes_off(name: str, outcomes: dict[str, list]) -> None:
    message, seconds = outcomes[name]
    assert f"/{name} " in message
    assert message.isprintable()
    assert len(message) < 500
    assert seconds < 5
