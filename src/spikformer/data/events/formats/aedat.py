"""AEDAT 2.0, what jAER writes (CIFAR10-DVS, MNIST-DVS), and 3.1, what cAER writes (DVS128 Gesture).

Not tonic's readers: in tonic 1.7 `read_dvs_128` and `read_dvs_ibm` fail on every file, unpacking two of three values.
Where the first worked, it called columns rows and OFF events ON; the second takes every type of packet for polarity
events, keeps invalid ones and forgets the clock's overflow. `read_davis_346` takes frame, IMU and trigger words for
events and knows one sensor size. None notices a file cut in mid-event or mid-packet.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from spikformer.data.events.formats.source import (
    CHIPS,
    count_events,
    read_source,
    size_of_chip,
    smallest_size,
    text_header,
    unwrap_stamps,
)
from spikformer.errors import FileError, printable
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
        raise FileError(
            path,
            f"was recorded with the chip {printable(chip)}, whose addresses are not known here; "
            f"known are {', '.join(CHIPS)}.",
            "unsupported",
        )
    is_dvs128 = size == CHIPS["DVS128"]
    is_event = address & (0x8000_8000 if is_dvs128 else 0x8000_0400) == 0
    if not is_event.all():
        address, stamps = address[is_event], stamps[is_event]
    x, y, on = _dvs128(address, path) if is_dvs128 else _davis(address, size)
    return Recording(unwrap_stamps(stamps), x, y, on, size)


def _chip(lines: list[str], address: np.ndarray, path: Path) -> str:
    """The class name in `AEChip: eu.seebetter.ini.chips.davis.DAVIS240C`."""
    for line in lines:
        if line.startswith("AEChip:"):
            return line.removeprefix("AEChip:").strip().rpartition(".")[2]
    # Files by scripts and by jAER before 2014 name no chip. The DVS128 is the one whose addresses end at bit 15.
    if len(address) and int(address.max()) >> 16:
        raise FileError(
            path, "names no chip in its header (# AEChip: …), and its addresses are not a DVS128's.", "unsupported"
        )
    return "DVS128"


def _dvs128(address: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unknown = address >> 16 != 0
    if unknown.any():
        first = int(unknown.argmax())
        raise FileError(
            path,
            f": event {first} has the address {int(address[first]):#010x}, but those of a DVS128 end at 0xffff; "
            "the file is damaged or of another camera.",
            at=first,
        )
    x = 127 - (address >> 1 & 127).astype(np.int16)
    y = 127 - (address >> 8 & 127).astype(np.int16)
    return x, y, address & 1 == 0


def _davis(address: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    height, width = size
    x = width - 1 - (address >> 12 & 1023).astype(np.int16)
    y = height - 1 - (address >> 22 & 511).astype(np.int16)
    return x, y, address & 0x800 != 0


_HEADER = struct.Struct("<hhiiiiii")
_POLARITY = 1


def read_aedat3(path: Path) -> Recording:
    """Lines of text that start with #, the last one `#!END-HEADER`, then packets. All numbers are little-endian.

    A packet is a header of 28 bytes (int16 type and source; int32 event size, place of the time in an event, clock
    overflows, capacity, number of events, number of valid ones) and room for `capacity` events. Type 1 is polarity:

        uint32 data   bit 0 valid · 1 ON · 2-16 row · 17-31 column, both from the upper left corner
        int32 time    microseconds, beyond 2³¹ · overflows

    Packets of other types (special, frame, IMU) and events marked as invalid are left out. Takes at most 16 times the
    file's size of memory.
    """
    data = read_source(path, b"#!AER-DAT3.1", "an AEDAT 3.1 file")
    lines, position = text_header(data, b"#", b"#!END-HEADER", path)
    if other := [line for line in lines if line.startswith("Format:") and line != "Format: RAW"]:
        raise FileError(
            path, f'states "{printable(other[0])}", which is not known here; known is "Format: RAW".', "unsupported"
        )

    packets = list(_polarity_packets(data, position, path))
    sources = {source for source, _, _ in packets}
    if len(sources) > 1:
        raise FileError(path, f"mixes the events of {len(sources)} cameras, expected one.", "unfit")
    words = np.concatenate([np.empty(0, "<u4"), *(events for _, _, events in packets)]).reshape(-1, 2)
    time_us = words[:, 1].astype(np.int32).astype(np.int64)
    if any(overflow for _, overflow, _ in packets):
        beyond = np.array([overflow for _, overflow, _ in packets], np.int64) << 31
        time_us += beyond.repeat([len(events) // 2 for _, _, events in packets])
    event = words[:, 0].astype(np.uint32)
    valid = event & 1 == 1
    if not valid.all():
        event, time_us = event[valid], time_us[valid]
    if len(time_us) and time_us.min() < 0:
        raise FileError(
            path,
            f": event {int((time_us < 0).argmax())} has a negative time; the file is damaged.",
            at=int((time_us < 0).argmax()),
        )
    x, y = (event >> 17).astype(np.int16), (event >> 2 & 0x7FFF).astype(np.int16)
    stated = _stated_size(lines, sources)
    size = stated or smallest_size(x, y, [*CHIPS.values(), (480, 640)])
    return Recording(time_us, x, y, event & 2 != 0, size, size_is_guessed=stated is None)


def _polarity_packets(data: bytes, position: int, path: Path) -> Iterator[tuple[int, int, np.ndarray]]:
    """Source, clock overflows and words of every packet of type 1, from a byte on."""
    while position < len(data):
        if position + _HEADER.size > len(data):
            raise FileError(
                path, f"is cut off in mid-packet, in the packet header at byte {position}.", "truncated", at=position
            )
        kind, source, event_bytes, time_at, overflow, capacity, number, _ = _HEADER.unpack_from(data, position)
        if event_bytes < 0 or not 0 <= number <= capacity or overflow < 0:
            raise FileError(
                path,
                f": the packet header at byte {position} makes no sense ({number} events, room for {capacity}, "
                f"{event_bytes} bytes each, {overflow} overflows); the file is damaged.",
                at=position,
            )
        start = position + _HEADER.size
        if event_bytes * capacity > len(data) - start:
            raise FileError(
                path,
                f"is cut off in mid-packet: the one at byte {position} takes {event_bytes * capacity} bytes, "
                f"the file has {len(data) - start} more.",
                "truncated",
                at=position,
            )
        if kind == _POLARITY:
            if (event_bytes, time_at) != (8, 4):
                raise FileError(
                    path,
                    f": the polarity packet at byte {position} has events of {event_bytes} bytes with the time "
                    f"at {time_at}, expected 8 and 4; the file is damaged.",
                    at=position,
                )
            yield source, overflow, np.frombuffer(data, "<u4", 2 * number, start)
        position = start + event_bytes * capacity


def _stated_size(lines: list[str], sources: set[int]) -> tuple[int, int] | None:
    """By the line `#Source 1: DVS128`; the layout of events is the same for all cameras, so an unknown one will do."""
    for line in lines:
        match = re.match(r"Source (\d{1,9}): (\S+)", line)
        if match and int(match[1]) in sources and (size := size_of_chip(match[2])):
            return size
    return None
