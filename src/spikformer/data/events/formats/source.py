"""What every event file begins with: bytes that are there, and often a header of text lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_LONGEST_HEADER = 1 << 20  # jAER writes its preferences there, tens of kilobytes; a short line takes 20 times its size


def open_source(path: Path) -> BinaryIO:
    """The file, opened; what is not there, not a file, or empty is refused."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, expected an event file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: it has 0 bytes.")
    return path.open("rb")


def read_source(path: Path, magic: bytes, kind: str) -> bytes:
    """All bytes of a file that must start with `magic`; `kind` is what to call it, with its article."""
    with open_source(path) as source:
        data = source.read()
    if not data.startswith(magic):
        raise ValueError(
            f"{path} is not {kind}: expected {magic!r} at byte 0, got {data[: max(len(magic), 12)]!r}; "
            "the file is damaged or of another format."
        )
    return data


def text_header(data: bytes, mark: bytes, last: bytes, path: Path) -> tuple[list[str], int]:
    """The lines at the beginning that start with `mark`, without it, and the byte after them.

    The line `last` ends the header, but old files lack it. There the first event may begin with the very byte of the
    mark; it is told from a line by its control characters, which clocks and addresses have and text has not. A header
    may have 1 MiB.
    """
    lines: list[str] = []
    position = 0
    while data.startswith(mark, position):
        end = data.find(b"\n", position)
        line = data[position : end if end >= 0 else len(data)].removesuffix(b"\r")
        if _CONTROL.search(line):
            break
        if end < 0:
            raise ValueError(f"{path} is cut off in its header, at byte {len(data)}.")
        if end >= _LONGEST_HEADER:
            raise ValueError(f"{path} has a header of more than {_LONGEST_HEADER:,} bytes; it is damaged.")
        lines.append(line.removeprefix(mark).decode("latin-1").strip())
        position = end + 1
        if line.startswith(last):
            break
    return lines, position


def count_events(data: bytes, start: int, event_bytes: int, path: Path) -> int:
    """How many events of a fixed width lie from byte `start` to the end; a part of one is refused."""
    count, rest = divmod(len(data) - start, event_bytes)
    if rest:
        raise ValueError(
            f"{path} is cut off in mid-event, at byte {len(data)}: event {count} has {rest} of its {event_bytes} bytes."
        )
    return count
