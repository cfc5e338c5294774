"""Engine files to start fuzzing from, sound and damaged, for fuzz_file.cpp: python -m tests.native.seeds FOLDER."""

import json
import struct
import sys
from pathlib import Path

from tests.engine.drawn_programs import draw_program
from tests.native.conftest import write_saved
from tests.native.damaged import WRONG

from spikformer.engine.file import write_compiled
from spikformer.engine.program import Compiled


def parts_of(content: bytes) -> bytes:
    """Of a file, as fuzz_file.cpp puts them together."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    metadata = header.pop("__metadata__")
    texts = [metadata[key] for key in ("program", "card", "density_threshold")]
    texts.append(json.dumps(header, separators=(",", ":"))[1:-1])
    return b"\xff".join([*(text.encode() for text in texts), content[8 + size :]])


def write_seeds(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "whole"
    write_saved(path)
    content = path.read_bytes()
    (folder / "parts").write_bytes(parts_of(content))
    for name, damage in WRONG.items():
        (folder / f"wrong {name}").write_bytes(damage(content))
    for seed in range(12):
        path = folder / f"random{seed}"
        write_compiled(Compiled(draw_program(seed), density_threshold=0.5), path)
        path.write_bytes(parts_of(path.read_bytes()))


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
