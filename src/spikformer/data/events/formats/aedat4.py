"""AEDAT 4, what iniVation's DV writes; tonic's copy of CIFAR10-DVS is in it.

Not tonic's reader: it needs the package `aedat`, whose decoder answers damage with a message without a place or with a
Rust panic, which is no `Exception` and ends a program that catches those; and tonic drops the sensor's size.
A packet is one flatbuffer of fixed-width events, which NumPy reads in place.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np

from spikformer.data.archives import LARGEST_RATIO
from spikformer.data.events.formats.source import check_sensor, read_source
from spikformer.errors import FileError, printable
from spikformer.sampling import Recording

_MAGIC = b"#!AER-DAT4.0\r\n"
_PACKET = struct.Struct("<ii")
_EVENT = np.dtype({"names": ["t", "x", "y", "on"], "formats": ["<i8", "<i2", "<i2", "u1"], "offsets": [0, 8, 10, 12],
                   "itemsize": 16})  # fmt: skip


def read_aedat4(path: Path) -> Recording:
    """A line of text, a header, packets, and a table of the packets at the end, which is not needed to read them.

    The header is a flatbuffer: int32 compression (0 none, 1-2 LZ4, 3-4 Zstandard), int64 place of the table (-1: none)
    and an XML text of the streams with their types and sensor sizes. A packet is an int32 stream, an int32 length, and
    a flatbuffer, compressed as the header says. Of a stream of type EVTS it holds a vector of events of 16 bytes:
    int64 Unix time in microseconds, int16 column and row from the upper left corner, a byte that is 1 for ON, and
    three of padding. Other streams (frames, IMU, triggers) are left out; of several cameras the first is read.

    A packet may unpack to 256 times its size (see `compression`). Takes at most 8 times the memory of all packets
    unpacked, and 64 times that of the header's XML.
    """
    data = read_source(path, _MAGIC, "an AEDAT 4.0 file")
    try:
        position = len(_MAGIC) + 4 + _number("<I", data, len(_MAGIC))
        header = data[len(_MAGIC) : position]
        if header[8:12] != b"IOHE":
            raise ValueError("it is not marked as one")
        compression, table = _scalar("<i", header, 0, 0), _scalar("<q", header, 1, -1)
        stream, (height, width) = _event_stream(_text(header, 2))
    except (struct.error, ValueError, ElementTree.ParseError) as error:
        raise FileError(
            path,
            f": the header at byte {len(_MAGIC)} is cut off or damaged ({printable(error)}).",
            at=len(_MAGIC),
        ) from None
    size = check_sensor(height, width, path)
    end = len(data) if table == -1 else table
    if not position <= end <= len(data):
        raise FileError(
            path, f"is cut off: its table should be at byte {table}, the file has {len(data)}.", "truncated", at=table
        )
    decompress = _decompressor(compression, path)

    packets = [np.empty(0, _EVENT)]
    for place, of_stream, content in _packets(data, position, end, path):
        if of_stream == stream:
            try:
                packets.append(_events(decompress(content)))
            except (struct.error, ValueError) as error:
                raise FileError(
                    path, f": the packet at byte {place} is damaged ({printable(error)}).", at=place
                ) from None
    events = np.concatenate(packets)
    x, y = np.ascontiguousarray(events["x"]), np.ascontiguousarray(events["y"])
    return Recording(np.ascontiguousarray(events["t"]), x, y, events["on"] != 0, size)


def _packets(data: bytes, position: int, end: int, path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Place, stream and content of every packet between two bytes."""
    while position < end:
        start = position + _PACKET.size
        if start > end:
            raise FileError(
                path, f"is cut off in mid-packet, in the packet header at byte {position}.", "truncated", at=position
            )
        stream, length = _PACKET.unpack_from(data, position)
        if not 0 <= length <= end - start:
            raise FileError(
                path,
                f"is cut off in mid-packet: the one at byte {position} takes {length} bytes, "
                f"there are {end - start} more.",
                "truncated",
                at=position,
            )
        yield position, stream, data[start : start + length]
        position = start + length


def _decompressor(compression: int, path: Path) -> Decompress:
    if compression == 0:
        return bytes
    if compression in (1, 2):
        return lz4_frames(path)
    if compression in (3, 4):
        return zstd_frames(path)
    raise FileError(
        path, f"states compression {compression}, expected 0 to 4; its header is damaged.", at="compression"
    )


def _event_stream(description: str) -> tuple[int, tuple[int, int]]:
    """Number and sensor size of the first stream of events in the header's XML."""
    if "<!" in description:
        raise ValueError("its XML has declarations")  # DV writes none, and entities are how XML bombs are made
    streams = {}
    for node in ElementTree.fromstring(description).iterfind("./node[@name='outInfo']/node"):
        if node.findtext("./attr[@key='typeIdentifier']") == "EVTS":
            height, width = (int(node.findtext(f".//attr[@key='{key}']") or 0) for key in ("sizeY", "sizeX"))
            streams[int(node.get("name", ""))] = (height, width)
    if not streams:
        raise ValueError("it describes no stream of events")
    return min(streams.items())


# Flatbuffers: a root table starts with the distance to its vtable, which lists where each field lies (0: left out).


def _events(buffer: bytes) -> np.ndarray:
    if buffer[8:12] != b"EVTS":
        raise ValueError(f"expected events, got {buffer[8:12]!r}")
    field = _field(buffer, 0)
    if field is None:
        return np.empty(0, _EVENT)
    vector = field + _number("<I", buffer, field)
    count = _number("<I", buffer, vector)
    if vector + 4 + count * _EVENT.itemsize > len(buffer):
        raise ValueError(f"{count} events do not fit into its {len(buffer)} bytes")
    return np.frombuffer(buffer, _EVENT, count, vector + 4)


def _text(buffer: bytes, index: int) -> str:
    field = _field(buffer, index)
    if field is None:
        raise ValueError("it describes no streams")
    start = field + _number("<I", buffer, field) + 4
    return buffer[start : start + _number("<I", buffer, start - 4)].decode()


def _scalar(code: str, buffer: bytes, index: int, default: int) -> int:
    field = _field(buffer, index)
    return default if field is None else _number(code, buffer, field)


def _field(buffer: bytes, index: int) -> int | None:
    table = 4 + _number("<I", buffer, 4)
    vtable = table - _number("<i", buffer, table)
    slot = 4 + 2 * index
    offset = _number("<H", buffer, vtable + slot) if slot < _number("<H", buffer, vtable) else 0
    return table + offset if offset else None


def _number(code: str, buffer: bytes, place: int) -> int:
    if place < 0:
        raise ValueError(f"it points to byte {place}")  # struct would count from the end
    return struct.unpack_from(code, buffer, place)[0]


Decompress = Callable[[bytes], bytes]


def lz4_frames(path: Path) -> Decompress:
    """A function that undoes one LZ4 frame, and raises ValueError for one that is damaged."""
    library = _import("lz4.frame", "lz4", "LZ4", path)

    def decompress(frame: bytes) -> bytes:
        try:
            # 0: the frame does not say its size.
            limit = _limit(library.get_frame_info(frame)["content_size"] or None, frame)
            decompressor = library.LZ4FrameDecompressor()
            content = decompressor.decompress(frame, max_length=limit + 1)
        except (RuntimeError, EOFError) as error:
            raise ValueError(str(error)) from None
        if not decompressor.eof:
            raise ValueError(f"a frame of {len(frame)} bytes is cut off, or holds more than {limit}")
        return content

    return decompress


def zstd_frames(path: Path) -> Decompress:
    """A function that undoes one Zstandard frame, and raises ValueError for one that is damaged."""
    library = _import("zstandard", "zstandard", "Zstandard", path)

    def decompress(frame: bytes) -> bytes:
        try:
            stated = library.frame_content_size(frame)  # -1: the frame does not say its size
            limit = _limit(None if stated < 0 else stated, frame)
            return library.ZstdDecompressor().decompress(frame, max_output_size=limit)
        except library.ZstdError as error:
            raise ValueError(str(error)) from None

    return decompress


def _limit(stated: int | None, frame: bytes) -> int:
    """How many bytes a frame may unpack to; the libraries allocate that many at once."""
    most = LARGEST_RATIO * len(frame)
    if stated is not None and stated > most:
        raise ValueError(f"a frame of {len(frame)} bytes claims to hold {stated}")
    return most if stated is None else stated


def _import(module: str, package: str, method: str, path: Path) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise FileError(
            path,
            f"is compressed with {method}, and the library for it is missing: pip install {package}.",
            "unsupported",
        ) from None
