"""Sets that need no files: scikit-learn's 8×8 digits, and the same digits seen by a simulated event camera.

1,797 digits; of every class 20 % are for testing and 10 % of the rest for validation, always the same ones.
"""

from __future__ import annotations

import numpy as np

from spikformer.data.dataset import DIGITS, ArraySamples, DataSet, preprocessed
from spikformer.data.events.simulator import EventCamera
from spikformer.data.options import DataOptions
from spikformer.data.splits import Subset, hold_out


def digits(options: DataOptions) -> DataSet:
    """8×8 gray images."""
    brightness, labels = _read()
    images = np.round(brightness * 255).astype(np.uint8)[:, None]
    train, validation, test = _splits(ArraySamples(images, labels, "digits"))
    pixels = images[train.indices] / 255
    seen = options.images((8, 8), 1, (float(pixels.mean()),), (float(pixels.std()),))
    return DataSet(
        name="digits",
        class_names=DIGITS,
        preprocessing=seen,
        train=preprocessed(train, seen),
        validation=preprocessed(validation, seen),
        test=preprocessed(test, seen),
    )


def digits_dvs(options: DataOptions) -> DataSet:
    """Frames of 16×16 from an event camera, two polarities."""
    camera = EventCamera()
    brightness, labels = _read()
    seen = options.events(camera.size, time_steps=8)
    frames = np.stack([seen.to_sample(recording) for recording in camera.watch(brightness)])
    train, validation, test = _splits(ArraySamples(frames, labels, "digits_dvs"))
    return DataSet(
        name="digits_dvs",
        class_names=DIGITS,
        preprocessing=seen,
        train=train,
        validation=validation,
        test=test,
    )


def _read() -> tuple[np.ndarray, np.ndarray]:
    """Brightness [N, 8, 8] between 0 and 1, and labels [N]."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images / 16, digits.target.astype(np.int64)


def _splits(samples: ArraySamples) -> tuple[Subset, Subset, Subset]:
    rest, test = hold_out(samples.labels, 0.2)
    train, validation = hold_out(samples.labels[rest], 0.1)
    return Subset(samples, rest[train]), Subset(samples, rest[validation]), Subset(samples, test)
