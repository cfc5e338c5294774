"""Preprocessing: how a decoded picture or recording becomes the input of a network, the same way everywhere.

    picture uint8 [C, H, W]  →  sample uint8 [C, h, w]             →  input float32 [B, C, h, w]
    recording of events      →  sample, counts of events [T, 2, h, w]  →  input float32 [T, B, 2, h, w]

Training, evaluation, prediction and the engine all go through it, and every weights and engine file holds it, so that
a file is seen as the network's own data set would have shown it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from spikformer.errors import FieldError, FileError
from spikformer.sampling import (
    Fit,
    Recording,
    Resampling,
    Slicing,
    evaluation_crop,
    evaluation_size,
    swap_axes,
    to_frames,
    with_channels,
    with_sensor,
)
from spikformer.validation import check_choice, check_count, check_mapping, check_number, check_size

Kind = Literal["image", "events"]

_LARGEST_SAMPLE = 1 << 28  # numbers, as `ModelConfig` bounds a layer
_LARGEST_COVER = 1 << 24  # pixels that a picture is resized to before its crop
_LARGEST_SENSOR = 4096
_SHARED = ("kind", "size", "channels")
_OWN = {
    "image": ("crop_ratio", "resampling", "mean", "std"),
    "events": ("time_steps", "sensor", "slicing", "fit", "swap_axes"),
}


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """The form of a network's inputs. Fields of the other kind keep their defaults."""

    kind: Kind
    size: tuple[int, int]
    """Height and width."""
    channels: int

    crop_ratio: float = 1.0
    """Of pictures: how much of the short side is seen."""
    resampling: Resampling = "bicubic"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    """Of brightness between 0 and 1, by channel; None takes it as it is."""

    time_steps: int | None = None
    """Frames of a recording."""
    sensor: tuple[int, int] | None = None
    """Height and width of the camera, for files that do not say it."""
    slicing: Slicing = "count"
    fit: Fit = "resize"
    """See `to_frames`."""
    swap_axes: bool = False
    """Rows become columns, as SpikingJelly reads CIFAR10-DVS."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(Kind))
        self._set("size", check_size("size", self.size, _LARGEST_SAMPLE))
        self._set("channels", check_count("channels", self.channels, 1024))
        for field in fields(self):
            is_own = field.name in (*_SHARED, *_OWN[self.kind])
            if not is_own and getattr(self, field.name) != field.default:
                raise FieldError(
                    field.name, f"{field.name} has no effect on preprocessing of kind {self.kind!r}; leave it out."
                )
        (self._check_image if self.kind == "image" else self._check_events)()
        if (self.time_steps or 1) * self.channels * prod(self.size) > _LARGEST_SAMPLE:
            raise FieldError("size", f"A sample may have {_LARGEST_SAMPLE:,} numbers at most; take a smaller size.")

    def _check_image(self) -> None:
        self._set("crop_ratio", check_number("crop_ratio", self.crop_ratio, 1 / 16, 1.0))
        check_choice("resampling", self.resampling, get_args(Resampling))
        if prod(evaluation_size(self.size, self.crop_ratio)) > _LARGEST_COVER:
            raise FieldError("size", f"size / crop_ratio may have {_LARGEST_COVER:,} pixels at most, got {self.size}.")
        if (self.mean is None) != (self.std is None):
            raise FieldError("std", "mean and std belong together; give both, or neither.")
        for name, least in (("mean", -1e6), ("std", 1e-6)):
            values: Any = getattr(self, name)
            if values is None:
                continue
            if not isinstance(values, list | tuple) or len(values) not in (1, self.channels):
                raise FieldError(name, f"{name} must have one number for each of {self.channels} channels.")
            self._set(name, tuple(check_number(name, value, least, 1e6) for value in values))

    def _check_events(self) -> None:
        self._set("time_steps", check_count("time_steps", self.time_steps, 1_000_000))
        check_choice("slicing", self.slicing, get_args(Slicing))
        check_choice("fit", self.fit, get_args(Fit))
        if self.channels != 2:
            raise FieldError("channels", f"Events have 2 channels, OFF and ON, got {self.channels}.")
        if self.sensor is not None:
            self._set("sensor", check_size("sensor", self.sensor, _LARGEST_SENSOR))
        if not isinstance(self.swap_axes, bool):
            raise FieldError("swap_axes", "swap_axes must be true or false.")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def events(self) -> bool:
        return self.kind == "events"

    @property
    def sample_shape(self) -> tuple[int, ...]:
        steps = () if self.time_steps is None else (self.time_steps,)
        return (*steps, self.channels, *self.size)

    @property
    def size_hint(self) -> tuple[int, int]:
        """Height and width that a picture file should be decoded to cover."""
        return evaluation_size(self.size, self.crop_ratio)

    def to_sample(self, source: np.ndarray | Recording, name: str = "The recording") -> np.ndarray:
        """The sample of a decoded picture, uint8 [C, H, W], or of a recording; `name` is for error messages."""
        if isinstance(source, Recording):
            return self._frames(source, name)
        if self.events:
            raise FieldError("source", "Expected a recording of events, got a picture.")
        if not isinstance(source, np.ndarray) or source.ndim != 3 or source.dtype != np.uint8 or 0 in source.shape:
            raise FieldError("source", f"Expected a picture [C, H, W] of uint8, got {_described(source)}.")
        return with_channels(evaluation_crop(source, self.size, self.crop_ratio, self.resampling), self.channels)

    def _frames(self, recording: Recording, name: str) -> np.ndarray:
        if self.time_steps is None:
            raise FieldError("source", "Expected a picture, got a recording of events.")
        if not len(recording.time_us):
            raise FileError(name, "holds no events.", "empty")
        seen = recording if self.sensor is None else with_sensor(recording, self.sensor, name)
        upright = swap_axes(seen) if self.swap_axes else seen
        return to_frames(upright, self.time_steps, slicing=self.slicing, size=self.size, fit=self.fit)

    def to_inputs(self, samples: np.ndarray) -> np.ndarray:
        """The float32 input of samples [B, …]: images scaled and normalised, frames with time first."""
        if samples.ndim != len(self.sample_shape) + 1 or samples.shape[-3:] != self.sample_shape[-3:]:
            raise FieldError("samples", f"Expected samples {['B', *self.sample_shape]}, got {_described(samples)}.")
        if self.events:
            return np.ascontiguousarray(samples.swapaxes(0, 1), np.float32)
        brightness = samples.astype(np.float32) / np.float32(255)
        if self.mean is None or self.std is None:
            return brightness
        mean, std = (np.array(value, np.float32)[:, None, None] for value in (self.mean, self.std))
        return (brightness - mean) / std

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, the fields of its kind alone."""
        values = {name: getattr(self, name) for name in (*_SHARED, *_OWN[self.kind])}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        """What `to_dict` was called on; anything else raises a ValueError."""
        check_mapping(cls, values, required=_SHARED)
        return cls(**values)


def _described(value: object) -> str:
    return f"{list(value.shape)} of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
