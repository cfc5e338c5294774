"""Sets that need no files: scikit-learn's 8×8 digits, and the same digits seen by a simulated event camera.

1,797 digits; of every class 20 % are for testing and 10 % of the rest for validation, always the same ones.
"""

from __future__ import annotations

import numpy as np

from spikformer.data.dataset import ArraySamples, DataSet, hold_out
from spikformer.data.events.frames import to_frames
from spikformer.data.events.simulator import EventCamera

_CLASSES = tuple(str(digit) for digit in range(10))


def digits() -> DataSet:
    """8×8 gray images."""
    brightness, labels = _read()
    images = np.round(brightness * 255).astype(np.uint8)[:, None]
    train, validation, test = _splits(ArraySamples(images, labels, "digits"))
    pixels = train.arrays / 255
    return DataSet(
        name="digits",
        class_names=_CLASSES,
        channels=1,
        size=(8, 8),
        events=False,
        train=train,
        validation=validation,
        test=test,
        mean=(float(pixels.mean()),),
        std=(float(pixels.std()),),
    )


def digits_dvs(time_steps: int = 8, seed: int = 0) -> DataSet:
    """Frames of 16×16 from an event camera, two polarities, T slices of equal numbers of events."""
    camera = EventCamera()
    brightness, labels = _read()
    recordings = camera.watch(brightness, seed)
    frames = np.stack([to_frames(recording, time_steps) for recording in recordings])
    train, validation, test = _splits(ArraySamples(frames, labels, "digits_dvs"))
    return DataSet(
        name="digits_dvs",
        class_names=_CLASSES,
        channels=2,
        size=camera.size,
        events=True,
        train=train,
        validation=validation,
        test=test,
    )


def _read() -> tuple[np.ndarray, np.ndarray]:
    """Brightness [N, 8, 8] between 0 and 1, and labels [N]."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images / 16, digits.target.astype(np.int64)


def _splits(samples: ArraySamples) -> tuple[ArraySamples, ArraySamples, ArraySamples]:
    rest, test = hold_out(samples.labels, 0.2)
    train, validation = hold_out(samples.labels[rest], 0.1)
    return samples.take(rest[train]), samples.take(rest[validation]), samples.take(test)
