"""Recordings as samples: frames of whole files, or of stretches of them, decoded once and then read from a cache."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spikformer.data.events.cache import FrameCache
from spikformer.data.events.formats import read_recording
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import Recording

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
