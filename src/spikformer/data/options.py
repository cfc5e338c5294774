"""DataOptions: how a data set is read, for those who want it otherwise than the set's own way.

Those of them that decide what a sample is, `PreprocessingOptions`, are settings of a recipe, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, get_args

from spikformer.errors import FieldError
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import Fit, Resampling, Slicing
from spikformer.validation import check_choice, check_count, check_mapping, check_number, check_size, check_text

IMAGES = ("size", "validation_share", "resampling", "mean", "std")
PICTURES = (*IMAGES, "crop_ratio", "class_names")
EVENTS = ("size", "validation_share", "time_steps", "slicing", "fit", "cache_gb")
RECORDINGS = (*EVENTS, "class_names", "sensor")


@dataclass(frozen=True, kw_only=True)
class PreprocessingOptions:
    """How samples are made of pictures and recordings, for those who want it otherwise than a set's own way.

    What is None is the set's own choice.
    """

    mean: tuple[float, ...] | None = None
    """Of brightness between 0 and 1, by channel; subtracted from images."""
    std: tuple[float, ...] | None = None
    """By which images are divided after that."""
    crop_ratio: float | None = None
    """Of picture files: how much of the short side evaluation sees (0.875)."""
    resampling: Resampling | None = None
    """How pictures are resized (bicubic)."""
    slicing: Slicing | None = None
    """Frames of equal numbers of events, or of equal time (count)."""
    fit: Fit | None = None
    """To another size than the sensor's: move events to the pixel that covers theirs, or keep the middle (resize)."""
    sensor: tuple[int, int] | None = None
    """Of an event folder whose files do not say it: height and width."""

    def __post_init__(self) -> None:
        """Before files are touched: a wrong value would make every sample look damaged."""
        for name, check in _CHECKS.items():
            value = getattr(self, name, None)
            if value is not None:
                object.__setattr__(self, name, check(name, value))
        if (self.mean is None) != (self.std is None):
            raise FieldError("std", "mean and std belong together; give both, or neither.")

    def given(self) -> dict[str, Any]:
        """The options that are not left to the set."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}


@dataclass(frozen=True, kw_only=True)
class DataOptions(PreprocessingOptions):
    """All options of a set. A set has some of them and raises a ValueError for the others."""

    size: tuple[int, int] | None = None
    """Height and width of images and frames."""
    time_steps: int | None = None
    """Frames of a recording (16)."""
    validation_share: float | None = None
    """Of the training split, held out where the set has no validation split (0.1)."""
    class_names: tuple[str, ...] | None = None
    """Of folders: in the order of a model's outputs, if not all classes are there, or not in order."""
    cache_gb: float | None = None
    """How much disk decoded frames may take (10); 0 decodes in every epoch."""

    def override(self, **values: Any) -> DataOptions:
        """A copy with some options changed; an unknown name raises a ValueError with the nearest known one."""
        check_mapping(DataOptions, values, required=())
        return replace(self, **values)

    def images(
        self,
        size: tuple[int, int],
        channels: int,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        crop_ratio: float = 1.0,
    ) -> Preprocessing:
        """The preprocessing of images whose set has this size, number of channels and normalisation."""
        return Preprocessing(
            kind="image",
            size=self.size or size,
            channels=channels,
            crop_ratio=self.crop_ratio or crop_ratio,
            resampling=self.resampling or "bicubic",
            mean=self.mean or mean,
            std=self.std or std,
        )

    def events(self, sensor: tuple[int, int], time_steps: int = 16, *, swap_axes: bool = False) -> Preprocessing:
        """The preprocessing of recordings by a camera of this height and width."""
        return Preprocessing(
            kind="events",
            size=self.size or sensor,
            channels=2,
            time_steps=self.time_steps or time_steps,
            sensor=sensor,
            slicing=self.slicing or "count",
            fit=self.fit or "resize",
            swap_axes=swap_axes,
        )


def _texts(name: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise FieldError(name, f"{name} must be a list of names.")
    return tuple(check_text(name, value, 1000) for value in values)


def _numbers(name: str, values: Any, least: float) -> tuple[float, ...]:
    if not isinstance(values, Sequence) or not values:
        raise FieldError(name, f"{name} must be a list of numbers, one for each channel.")
    return tuple(check_number(name, value, least, 1e6) for value in values)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "size": partial(check_size, most=1 << 16),
    "sensor": partial(check_size, most=4096),
    "validation_share": partial(check_number, least=0, most=0.999),
    "crop_ratio": partial(check_number, least=1 / 16, most=1),
    "time_steps": partial(check_count, most=1_000_000),
    "cache_gb": partial(check_number, least=0, most=1e9),
    "resampling": partial(check_choice, choices=get_args(Resampling)),
    "slicing": partial(check_choice, choices=get_args(Slicing)),
    "fit": partial(check_choice, choices=get_args(Fit)),
    "class_names": _texts,
    "mean": partial(_numbers, least=-1e6),
    "std": partial(_numbers, least=1e-6),
}
