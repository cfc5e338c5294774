"""AEDAT 3.1, what cAER writes: DVS128 Gesture.

Not tonic's reader: in tonic 1.7 `read_dvs_ibm` fails on every file (it unpacks two of three values); its packet loop
takes every type of packet for polarity events, keeps invalid ones, forgets the clock's overflow, and reads what is
left of a cut packet.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from spikformer.data.events.formats.source import CHIPS, read_source, size_of_chip, smallest_size, text_header
from spikformer.messages import printable
from spikformer.sampling import Recording

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
        raise ValueError(f'{path} states "{printable(other[0])}", which is not known here; known is "Format: RAW".')

    packets = list(_polarity_packets(data, position, path))
    sources = {source for source, _, _ in packets}
    if len(sources) > 1:
        raise ValueError(f"{path} mixes the events of {len(sources)} cameras, expected one.")
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
        raise ValueError(f"{path}: event {int((time_us < 0).argmax())} has a negative time; the file is damaged.")
    x, y = (event >> 17).astype(np.int16), (event >> 2 & 0x7FFF).astype(np.int16)
    stated = _stated_size(lines, sources)
    size = stated or smallest_size(x, y, [*CHIPS.values(), (480, 640)])
    return Recording(time_us, x, y, event & 2 != 0, size, size_is_guessed=stated is None)


def _polarity_packets(data: bytes, position: int, path: Path) -> Iterator[tuple[int, int, np.ndarray]]:
    """Source, clock overflows and words of every packet of type 1, from a byte on."""
    while position < len(data):
        if position + _HEADER.size > len(data):
            raise ValueError(f"{path} is cut off in mid-packet, in the packet header at byte {position}.")
        kind, source, event_bytes, time_at, overflow, capacity, number, _ = _HEADER.unpack_from(data, position)
        if event_bytes < 0 or not 0 <= number <= capacity or overflow < 0:
            raise ValueError(
                f"{path}: the packet header at byte {position} makes no sense ({number} events, room for {capacity}, "
                f"{event_bytes} bytes each, {overflow} overflows); the file is damaged."
            )
        start = position + _HEADER.size
        if event_bytes * capacity > len(data) - start:
            raise ValueError(
                f"{path} is cut off in mid-packet: the one at byte {position} takes {event_bytes * capacity} bytes, "
                f"the file has {len(data) - start} more."
            )
        if kind == _POLARITY:
            if (event_bytes, time_at) != (8, 4):
                raise ValueError(
                    f"{path}: the polarity packet at byte {position} has events of {event_bytes} bytes with the time "
                    f"at {time_at}, expected 8 and 4; the file is damaged."
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
