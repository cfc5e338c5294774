"""Engine files made of a sound one: those that neither Python nor C reads, and random ones that they may."""

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np


def changed(content: bytes, change: Callable[[dict[str, Any]], object], *, key: str | None = None) -> bytes:
    """The file with another header; with a key, that part of its metadata, which is JSON itself."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    if key is None:
        change(header)
    else:
        value = json.loads(header["__metadata__"][key])
        change(value)
        header["__metadata__"][key] = json.dumps(value)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda file: b"",
    "short": lambda file: file[:100],
    "cut": lambda file: file[:-1],
    "longer": lambda file: file + b"\0",
    "long header": lambda file: b"\xff" * 8 + file[8:],
    "deep": lambda file: struct.pack("<Q", 100_000) + b"[" * 100_000,
    "twice": lambda file: struct.pack("<Q", 14) + b'{"a":1,"a":1} ',
    "bytes": lambda file: struct.pack("<Q", 6) + b'{"\xff":1',
    "format": lambda file: file.replace(b"spikformer-engine", b"spikformer-engima"),
    "version": lambda file: file.replace(b'"format_version":"3"', b'"format_version":"4"'),
    "dtype": lambda file: file.replace(b'"F32"', b'"I32"'),
    "overlap": lambda file: changed(file, lambda header: header["head.bias"].update(data_offsets=[0, 12])),
    "huge": lambda file: changed(file, lambda header: header["head.bias"].update(shape=[2**40, 2**40])),
    "metadata": lambda file: changed(file, lambda header: header["__metadata__"].update(card=1)),
    "no ops": lambda file: changed(file, lambda program: program.update(ops=[]), key="program"),
    "no readout": lambda file: changed(file, lambda program: program["ops"].pop(), key="program"),
    "unknown op": lambda file: changed(file, lambda program: program["ops"][0].update(op="run"), key="program"),
    "unknown field": lambda file: changed(file, lambda program: program["ops"][0].update(more=1), key="program"),
    "forward": lambda file: changed(file, lambda program: program["ops"][0].update(inputs=[1]), key="program"),
    "arity": lambda file: changed(file, lambda program: program["ops"][0].update(inputs=[0, 0]), key="program"),
    "same name": lambda file: changed(file, lambda program: program["ops"][1].update(name="fire"), key="program"),
    "stride": lambda file: changed(file, lambda program: program["ops"][0].update(stride=3), key="program"),
    "float": lambda file: changed(file, lambda program: program["ops"][0].update(stride=1.0), key="program"),
    "boolean": lambda file: changed(file, lambda program: program["ops"][0].update(stride=True), key="program"),
    "threshold": lambda file: changed(
        file, lambda program: program["ops"][2].update(neuron=[1, 1, 0, 0]), key="program"
    ),
    "constant": lambda file: changed(
        file, lambda program: program["ops"][2].update(neuron=[1e9, 1, 1, 0]), key="program"
    ),
    "steps": lambda file: changed(file, lambda program: program.update(time_steps=10**7), key="program"),
    "no steps": lambda file: changed(file, lambda program: program.update(time_steps=0), key="program"),
    "size": lambda file: changed(file, lambda program: program.update(image_size=[8, 10**6]), key="program"),
    "odd size": lambda file: changed(file, lambda program: program.update(image_size=[7, 16]), key="program"),
    "classes": lambda file: changed(file, lambda card: card.update(class_names=["a"]), key="card"),
    "no name": lambda file: changed(file, lambda card: card.update(class_names=["a", "", "c"]), key="card"),
    "input": lambda file: changed(file, lambda card: card["preprocessing"].update(channels=3), key="card"),
    "ratio": lambda file: changed(file, lambda card: card["preprocessing"].update(crop_ratio=0.01), key="card"),
    "deviation": lambda file: changed(file, lambda card: card["preprocessing"].update(std=[0]), key="card"),
    "NaN": lambda file: file[:-4] + struct.pack("<f", float("nan")),
    "large": lambda file: file[:-4] + struct.pack("<f", 1e30),
}


_VALUES = (0, 1, 2, 3, 64, -1, 2**31, 2**63, 1.5, 1e308, "", "fire", "a\0b", None, True, [], [1, 2], {})


def drawn(content: bytes, count: int) -> list[bytes]:
    """Files with a byte of the header changed, and as many with a value of the program or the card."""
    rng = np.random.default_rng(0)
    (size,) = struct.unpack("<Q", content[:8])
    files = []
    for _ in range(count):
        place = int(rng.integers(0, 8 + size))
        files.append(content[:place] + bytes([rng.integers(0, 256)]) + content[place + 1 :])
        files.append(changed(content, lambda value: _change_one(value, rng), key=str(rng.choice(["program", "card"]))))
    return files


def _change_one(value: Any, rng: np.random.Generator) -> None:
    """Anywhere in JSON, one value becomes another."""
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[rng.integers(len(keys))]
    inner = value[key]
    if isinstance(inner, dict | list) and inner and rng.random() < 0.9:
        _change_one(inner, rng)
    else:
        value[key] = _VALUES[rng.integers(len(_VALUES))]
