"""AEDAT 2.0, what jAER writes: CIFAR10-DVS, MNIST-DVS and many recordings of DVS128 and DAVIS cameras.

Not tonic's readers: in tonic 1.7 `read_dvs_128` fails on every file (it unpacks two of three values), and where it
worked, it called columns rows and OFF events ON; `read_davis_346` takes frame, IMU and trigger words for events and
knows one sensor size; neither minds a file cut in mid-event, nor unwraps the clock.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spikformer.data.events.formats.source import CHIPS, count_events, read_source, size_of_chip, text_header, unwrap
from spikformer.messages import printable
from spikformer.sampling import Recording


def read_aedat2(path: Path) -> Recording:
    """Lines of text that start with #, then events of 8 bytes: big-endian uint32 address, uint32 microseconds.

    What an address means depends on the chip, which the header names (`# AEChip: …`); the bits are those of jAER's
    extractors. jAER counts columns from the right in the address and rows from the bottom; a recording counts them
    from the left and the top.

        DVS128             bit 0 OFF · 1-7 column · 8-14 row · 15 or 31 an external trigger
        DAVIS240, DAVIS346 bit 11 ON · 12-21 column · 22-30 row · 10 an external trigger · 31 a frame or IMU sample

    Triggers, frames and IMU samples are left out. Takes at most 8 times the file's size of memory.
    """
    data = read_source(path, b"#!AER-DAT2.", "an AEDAT 2.0 file")
    lines, start = text_header(data, b"#", b"#End Of ASCII Header", path)
    count = count_events(data, start, 8, path)
    words = np.frombuffer(data, ">u4", 2 * count, start).reshape(count, 2)
    address, stamps = words[:, 0].astype(np.uint32), words[:, 1].astype(np.uint32)

    chip = _chip(lines, address, path)
    size = size_of_chip(chip)
    if size is None:
        raise ValueError(
            f"{path} was recorded with the chip {printable(chip)}, whose addresses are not known here; "
            f"known are {', '.join(CHIPS)}."
        )
    is_dvs128 = size == CHIPS["DVS128"]
    is_event = address & (0x8000_8000 if is_dvs128 else 0x8000_0400) == 0
    if not is_event.all():
        address, stamps = address[is_event], stamps[is_event]
    x, y, on = _dvs128(address, path) if is_dvs128 else _davis(address, size)
    return Recording(unwrap(stamps), x, y, on, size)


def _chip(lines: list[str], address: np.ndarray, path: Path) -> str:
    """The class name in `AEChip: eu.seebetter.ini.chips.davis.DAVIS240C`."""
    for line in lines:
        if line.startswith("AEChip:"):
            return line.removeprefix("AEChip:").strip().rpartition(".")[2]
    # Files by scripts and by jAER before 2014 name no chip. The DVS128 is the one whose addresses end at bit 15.
    if len(address) and int(address.max()) >> 16:
        raise ValueError(f"{path} names no chip in its header (# AEChip: …), and its addresses are not a DVS128's.")
    return "DVS128"


def _dvs128(address: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unknown = address >> 16 != 0
    if unknown.any():
        first = int(unknown.argmax())
        raise ValueError(
            f"{path}: event {first} has the address {int(address[first]):#010x}, but those of a DVS128 end at 0xffff; "
            "the file is damaged or of another camera."
        )
    x = 127 - (address >> 1 & 127).astype(np.int16)
    y = 127 - (address >> 8 & 127).astype(np.int16)
    return x, y, address & 1 == 0


def _davis(address: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    height, width = size
    x = width - 1 - (address >> 12 & 1023).astype(np.int16)
    y = height - 1 - (address >> 22 & 511).astype(np.int16)
    return x, y, address & 0x800 != 0
