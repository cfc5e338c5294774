"""Small files of a run folder, read within bounds: anyone may have written them.

A file may have 4 MiB. Time is linear in its size; parsed, each byte of JSON takes at most 50 bytes of memory, each byte
of CSV 100.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_MOST_BYTES = 4 * 2**20  # ten thousand epochs take half of it
_MOST_LEVELS = 32


def read_bounded(path: Path) -> bytes:
    """A file's content; ValueError if it is longer than any that a run writes."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{path} is larger than {_MOST_BYTES // 2**20} MB.")
    return content


def read_json(path: Path) -> Any:
    """The content of a JSON file; ValueError if it is too large, nested too deeply or damaged."""
    try:
        content = json.loads(read_bounded(path))
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply.") from None
    level = [content]
    for _ in range(_MOST_LEVELS):
        inside = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [inner for values in inside for inner in values]
    if level:
        raise ValueError(f"{path} is nested too deeply.")
    return content
