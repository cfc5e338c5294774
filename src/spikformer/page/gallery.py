"""Samples that come along with a page: of sets that are embedded in the package, or of data that the caller names.

A sample is bytes as the network's preprocessing makes them; of embedded event sets it is the recording itself, so that
the page can slice it into another number of frames.
"""

from __future__ import annotations

import io
from base64 import b64encode
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spikformer.card import ModelCard
from spikformer.config import NetworkConfig
from spikformer.data.embedded import recorded_digits
from spikformer.engine.program import Compiled
from spikformer.errors import FieldError
from spikformer.runs.trained import choose_samples, open_data
from spikformer.sampling import Recording

NUM_SAMPLES = 20
_EMBEDDED = ("digits", "digits_dvs")
_MOST_COUNT = 255


class _Network(NamedTuple):
    config: NetworkConfig
    card: ModelCard


def gallery(compiled: Compiled, data: Path | None, num_samples: int = NUM_SAMPLES) -> list[dict[str, Any]]:
    """Test samples, as many of each class as can be; none where the set is neither embedded nor given."""
    card = compiled.card
    known = card.data_set is not None and bool(card.class_names)
    if compiled.config is None or not known or (data is None and card.data_set not in _EMBEDDED):
        if data is not None:
            raise FieldError("data", "This network does not say which data it was trained on; leave --data out.")
        return []
    if not num_samples:
        return []
    opened = open_data(_Network(compiled.config, card), data)
    split = "test" if "test" in opened.splits else opened.splits[0]
    samples = opened.split(split)
    recordings = recorded_digits(split) if card.data_set == "digits_dvs" else None
    shown = []
    for place in choose_samples(opened, split, num_samples):
        label = card.class_names[int(samples.labels[place])]
        content = _picture(samples[place]) if recordings is None else _recording(recordings[place])
        shown.append({"label": label, "name": f"{split} sample {place}", **content})
    return shown


def _picture(sample: np.ndarray) -> dict[str, Any]:
    """A picture [C, H, W], or counts of events [T, 2, H, W]; those above 255 are shown as 255."""
    bounded = np.minimum(sample, _MOST_COUNT).astype(np.uint8)
    kind = "picture" if sample.ndim == 3 else "frames"
    return {"kind": kind, "shape": list(sample.shape), "bytes": encoded(bounded.tobytes())}


def _recording(recording: Recording) -> dict[str, Any]:
    """An .npz file, which the page reads as one that is dropped."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        t=recording.time_us.astype(np.int32),
        x=recording.x,
        y=recording.y,
        p=recording.on,
        size=np.array(recording.size, np.int16),
    )
    return {"kind": "recording", "bytes": encoded(file.getvalue())}


def encoded(content: bytes) -> str:
    return b64encode(content).decode("ascii")
