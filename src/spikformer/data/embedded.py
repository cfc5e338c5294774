"""Sets that need no files: scikit-learn's 8×8 digits, and the same digits seen by a simulated event camera.

1,797 digits; of every class 20 % are for testing and 10 % of the rest for validation, always the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from spikformer.data.dataset import DIGITS, SPLITS, ArraySamples, DataSet, preprocessed
from spikformer.data.options import DataOptions
from spikformer.data.splits import Subset, hold_out
from spikformer.errors import FieldError
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import Recording


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
    seen = options.events(EventCamera.size, time_steps=8)
    frames, labels = _watched(seen)
    train, validation, test = _splits(ArraySamples(frames.copy(), labels, "digits_dvs"))  # which may be written to
    return DataSet(
        name="digits_dvs",
        class_names=DIGITS,
        preprocessing=seen,
        train=train,
        validation=validation,
        test=test,
    )


@lru_cache(maxsize=1)  # seconds of simulation
def _watched(seen: Preprocessing) -> tuple[np.ndarray, np.ndarray]:
    """Frames [N, T, 2, H, W] and labels [N] of all digits."""
    brightness, labels = _read()
    frames = np.stack([seen.to_sample(recording) for recording in EventCamera().watch(brightness)])
    return frames, labels


def recorded_digits(split: str) -> list[Recording]:
    """What the frames of `digits_dvs` are made of: the recordings of a split, in its order."""
    brightness, labels = _read()
    parts = dict(zip(SPLITS, _splits(ArraySamples(brightness, labels, "digits")), strict=True))
    recordings = EventCamera().watch(brightness)
    return [recordings[place] for place in parts[split].indices]


def _read() -> tuple[np.ndarray, np.ndarray]:
    """Brightness [N, 8, 8] between 0 and 1, and labels [N]."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images / 16, digits.target.astype(np.int64)


def _splits(samples: ArraySamples) -> tuple[Subset, Subset, Subset]:
    rest, test = hold_out(samples.labels, 0.2)
    train, validation = hold_out(samples.labels[rest], 0.1)
    return Subset(samples, rest[train]), Subset(samples, rest[validation]), Subset(samples, test)


@dataclass(frozen=True)
class EventCamera:
    """A sensor and the motion in front of it, as CIFAR10-DVS and N-MNIST were recorded: an image moves, pixels fire.

    The image glides along three straight saccades, around a triangle and back. Each pixel remembers the logarithm of
    the brightness at its last event, and fires an ON or OFF event whenever the present one is a threshold away:

        L(t) = log(ε + I(x − s(t)))         while |L(t) − M| ≥ θ:  fire sign(L − M), M += θ sign(L − M)

    Thresholds differ a little from pixel to pixel, as real ones do, and a pixel fires at random now and then. Events
    within one step of the simulation are spread over it in the order of their crossings.
    """

    size: tuple[int, int] = (16, 16)
    saccade_us: int = 100_000
    """Each of the three saccades, as in N-MNIST."""
    step_us: int = 2_000
    amplitude: float = 2.0
    """Length of a saccade in pixels of the sensor."""
    threshold: float = 0.35
    """θ, in units of log brightness."""
    threshold_spread: float = 0.03
    """Standard deviation of θ between pixels."""
    darkness: float = 0.1
    """ε: how far from black the logarithm starts, the brightest pixel being 1."""
    noise_hz: float = 0.5
    """Random events of one pixel in a second."""

    def watch(self, images: np.ndarray, seed: int = 0) -> list[Recording]:
        """A recording of each image [B, H, W] with brightness between 0 and 1, larger or smaller than the sensor."""
        if images.ndim != 3 or not np.isfinite(images).all() or images.min() < 0 or images.max() > 1:
            raise FieldError(
                "images", f"Expected images [B, H, W] of brightness 0 to 1, got shape {list(images.shape)}."
            )
        random = np.random.default_rng(seed)
        thresholds = np.maximum(random.normal(self.threshold, self.threshold_spread, self.size), self.threshold / 2)
        path = self.path()
        memory = self._log_brightness(images, path[0])
        events = [
            found
            for step, position in enumerate(path[1:])
            for found in self._step(memory, self._log_brightness(images, position), thresholds, step, random)
        ]
        image, time_us, y, x, on = (np.concatenate(column) for column in zip(*events, strict=True))
        order = np.lexsort((time_us, image))
        image, time_us, y, x, on = image[order], time_us[order], y[order], x[order], on[order]
        bounds = np.searchsorted(image, np.arange(len(images) + 1))
        return [
            Recording(time_us[a:b], x[a:b].astype(np.int16), y[a:b].astype(np.int16), on[a:b], self.size)
            for a, b in pairwise(bounds)
        ]

    def path(self) -> np.ndarray:
        """Offsets (down, right) at every step: around a triangle, back to where it began."""
        corners = np.array([(0.0, 0.0), (1.0, 0.5), (1.0, -0.5), (0.0, 0.0)]) * self.amplitude
        steps = self.saccade_us // self.step_us
        legs = [np.linspace(a, b, steps, endpoint=False) for a, b in pairwise(corners)]
        return np.concatenate([*legs, corners[-1:]])

    def _log_brightness(self, images: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Images [B, H, W] as the moved sensor sees them [B, h, w], interpolated linearly; beyond its edge is dark."""
        _, image_height, image_width = images.shape
        height, width = self.size
        rows = (np.arange(height) + 0.5 - offset[0]) * image_height / height - 0.5
        columns = (np.arange(width) + 0.5 - offset[1]) * image_width / width - 0.5
        seen = _weights(rows, image_height) @ images @ _weights(columns, image_width).T
        return np.log(self.darkness + seen)

    def _step(
        self, memory: np.ndarray, present: np.ndarray, thresholds: np.ndarray, step: int, random: np.random.Generator
    ) -> list[tuple[np.ndarray, ...]]:
        """Events of one step as (image, time, row, column, on); moves the memory."""
        change = (present - memory) / thresholds
        crossings = np.trunc(change).astype(np.int64)
        memory += crossings * thresholds
        image, y, x = np.nonzero(crossings)
        count = crossings[image, y, x]
        repeats = np.abs(count)
        first = np.repeat(np.cumsum(repeats) - repeats, repeats)
        nth = np.arange(repeats.sum()) - first + 1
        image, y, x, on = (np.repeat(column, repeats) for column in (image, y, x, count > 0))
        # The n-th crossing of a change of c thresholds happens after n/|c| of the step.
        share = nth / np.abs(change[image, y, x])
        time_us = step * self.step_us + (share * self.step_us).astype(np.int64)

        flashes = random.poisson(self.noise_hz * self.step_us / 1e6 * memory.size)
        noise = [random.integers(0, limit, flashes) for limit in memory.shape]
        noise_time = step * self.step_us + random.integers(0, self.step_us, flashes)
        return [
            (image, time_us, y, x, on),
            (noise[0], noise_time, noise[1], noise[2], random.random(flashes) < 0.5),
        ]


def _weights(positions: np.ndarray, length: int) -> np.ndarray:
    """Linear interpolation of `length` samples at positions, as a matrix; outside they are 0."""
    distance = np.abs(positions[:, None] - np.arange(length)[None, :])
    return np.clip(1 - distance, 0, None)
