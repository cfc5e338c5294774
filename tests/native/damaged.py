"""Engine files that neither Python nor C reads, each made of one that both do."""

import json
import struct
from collections.abc import Callable
from typing import Any


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
