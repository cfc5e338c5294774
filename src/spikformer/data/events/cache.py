"""Frames kept on disk, so that a recording is decoded in the first epoch and read back in the next ones.

An entry is a file named by a hash of its key: magic, CRC-32 of the rest, then the frames as .npy. They are not packed:
that would take longer than decoding most recordings. Entries appear whole or not at all. One that is damaged counts as
missing, and is written anew; so does one with a header that is not ours. Reading takes three times the entry's size.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from spikformer.data.events.formats.numpy_files import read_array
from spikformer.io import TEMP_SUFFIX, remove_stale, write_atomically

logger = logging.getLogger(__name__)

_MAGIC = b"spikfrm1"
_ENDING = ".frames"
_PORTION = 1 / 16
_KINDS = (np.uint8, np.int16, np.int32, np.int64)


class FrameCache:
    """At most `max_bytes` of frames in a folder; what was not read for the longest time goes first.

    Several processes may share the folder. Each counts what it wrote and looks at the whole again after a sixteenth
    of the limit, so that n processes may exceed it by n sixteenths for a while.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._unseen = max_bytes  # written since the last look; the first write looks
        self._works = True

    def is_usable(self) -> bool:
        """Whether it can be written to; told once where it cannot, before processes that read ahead all find out."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / ".writable", b"", durable=False)
        except OSError as error:
            self._give_up(error)
        return self._works

    def get(self, key: str) -> np.ndarray | None:
        """The frames put under a key, or None."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # another process may just have removed it; what was read is whole
            os.utime(path)
        return _decode(content)

    def put(self, key: str, frames: np.ndarray) -> None:
        """Keep frames; where that fails, say so once and go on without."""
        content = _encode(frames)
        if not self._works or len(content) > self.max_bytes:
            return
        path = self._path(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content, durable=False)
            self._unseen += len(content)
            if self._unseen >= self.max_bytes * _PORTION:
                self._make_room()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._works = False
        logger.warning(
            "Frames are not kept in %s (%s); every epoch decodes events.", self.folder, error.strerror or error
        )

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:40]
        return self.folder / f"{name}{_ENDING}"

    def _make_room(self) -> None:
        entries = []
        with os.scandir(self.folder) as found:
            for entry in found:
                try:
                    status = entry.stat()
                except FileNotFoundError:
                    continue
                if entry.name.endswith(_ENDING):
                    entries.append((status.st_mtime_ns, status.st_size, entry.path))
                elif entry.name.endswith(TEMP_SUFFIX):
                    remove_stale(Path(entry.path))  # of a process that was killed
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.max_bytes * (1 - _PORTION):
                break
            Path(path).unlink(missing_ok=True)
            total -= size
        self._unseen = 0


def _encode(frames: np.ndarray) -> bytes:
    array = io.BytesIO()
    np.lib.format.write_array(array, frames, allow_pickle=False)
    content = array.getvalue()
    return _MAGIC + zlib.crc32(content).to_bytes(4, "little") + content


def _decode(content: bytes) -> np.ndarray | None:
    payload = memoryview(content)[12:]
    if content[:8] != _MAGIC or zlib.crc32(payload).to_bytes(4, "little") != content[8:12]:
        return None
    try:
        frames = read_array(io.BytesIO(payload), "frames", num_axes=4)
    except ValueError:
        return None
    return frames.copy() if frames.dtype in _KINDS and frames.size else None  # the copy can be written to
