"""Recordings as samples: frames of files, or of stretches of them, decoded in the first epoch and then kept on disk.

A cache entry is a file named by a hash of its key: magic, CRC-32 of the rest, then the frames as .npy. They are not
compressed: that would take longer than decoding most recordings. Entries appear whole or not at all. A damaged one, or
one with an unknown header, counts as missing and is written again. Reading takes three times the entry's size.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.events.formats import read_recording
from spikformer.data.events.formats.numpy_files import read_array
from spikformer.io import TEMP_SUFFIX, remove_stale, write_atomically
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import Recording

logger = logging.getLogger(__name__)

_VERSION = 2  # of what frames mean: another one makes all kept frames strangers


class Clip(NamedTuple):
    """A file, or the events in it from a time on and before another one."""

    path: str
    stretch_us: tuple[int, int] | None = None

    def __str__(self) -> str:
        return self.path if self.stretch_us is None else "{}, {} to {} µs".format(self.path, *self.stretch_us)

    def cut(self, recording: Recording) -> Recording:
        """Its part of the file's events; maybe none."""
        if self.stretch_us is None:
            return recording
        start, end = np.searchsorted(recording.time_us, np.array(self.stretch_us, np.int64))
        time_us, x, y, on = (column[start:end] for column in recording[:4])
        return recording._replace(time_us=time_us, x=x, y=y, on=on)


class LabelledClips(NamedTuple):
    """Clips and their labels int64 [N]."""

    clips: tuple[Clip, ...]
    labels: np.ndarray

    def take(self, indices: np.ndarray) -> LabelledClips:
        return LabelledClips(tuple(self.clips[index] for index in indices), self.labels[indices])


@dataclass(frozen=True, eq=False, repr=False)
class RecordingSamples:
    """Frames of clips, small integers [T, 2, H, W]."""

    clips: tuple[Clip, ...]
    labels: np.ndarray
    preprocessing: Preprocessing
    cache: FrameCache | None

    def __len__(self) -> int:
        return len(self.clips)

    def __getitem__(self, index: int) -> np.ndarray:
        clip = self.clips[index]
        frames = self.cache.get(self._key(clip)) if self.cache else None
        if frames is not None and frames.shape == self.preprocessing.sample_shape:
            return frames
        return self._decode(clip)

    def source(self, index: int) -> str:
        return str(self.clips[index])

    def _decode(self, clip: Clip) -> np.ndarray:
        """Frames of a clip; all clips of its file are kept, since decoding the file is what takes the time."""
        recording = read_recording(clip.path) if clip.stretch_us is None else _read_again(clip.path, *_stamp(clip))
        frames = self.preprocessing.to_sample(clip.cut(recording), str(clip))
        if self.cache is not None:
            self.cache.put(self._key(clip), frames)
            for other in self._others(clip):
                with suppress(ValueError):  # is raised again when that clip is asked for
                    self.cache.put(self._key(other), self.preprocessing.to_sample(other.cut(recording), str(other)))
        return frames

    def _others(self, clip: Clip) -> list[Clip]:
        if clip.stretch_us is None:
            return []
        return [other for other in self.clips if other.path == clip.path and other != clip]

    def _key(self, clip: Clip) -> str:
        """By the file's place, size and time of change: a file that was replaced is decoded again."""
        place = str(Path(clip.path).absolute())
        return json.dumps([_VERSION, place, *_stamp(clip), clip.stretch_us, self.preprocessing.to_dict()])


def _stamp(clip: Clip) -> tuple[int, int]:
    """Size and time of change of a clip's file."""
    try:
        status = os.stat(clip.path)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {clip.path}.") from None
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=1)
def _read_again(path: str, _size: int, _changed_ns: int) -> Recording:
    """A recording whose next clip is likely to be asked for next; one at most is held."""
    return read_recording(path)


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
        """Whether it can be written to; one warning where it cannot, before all workers find out."""
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
        """Keep frames; where that fails, warn once and continue without."""
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
        frames = read_array(io.BytesIO(payload), Path("frames"), num_axes=4)
    except ValueError:
        return None
    return frames.copy() if frames.dtype in _KINDS and frames.size else None  # the copy can be written to
