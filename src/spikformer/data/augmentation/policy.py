"""Augmentation: what may happen to training samples, validated when it is made, and the published recipes' choices."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import Any, Literal, get_args

from spikformer.errors import FieldError, UnknownNameError, shown
from spikformer.validation import is_integer

Geometric = Literal["rotate", "shear_x", "shear_y", "translate_x", "translate_y"]
Colour = Literal[
    "auto_contrast",
    "equalize",
    "invert",
    "posterize",
    "solarize",
    "solarize_add",
    "color",
    "contrast",
    "brightness",
    "sharpness",
]
Operation = Literal["identity", "cutout", Geometric, Colour]

GEOMETRIC: tuple[str, ...] = get_args(Geometric)
COLOUR: tuple[str, ...] = get_args(Colour)
OPERATIONS: tuple[str, ...] = get_args(Operation)


@dataclass(frozen=True)
class Augmentation:
    """What may happen to training samples; nothing by default. Those of published recipes are below."""

    flip: float = 0.0
    """Probability of a mirror image."""
    alternate_flip: bool = False
    """Every sample is a mirror image in every other epoch, instead of by chance."""
    crop_scale: tuple[float, float] | None = None
    """Least and most of a picture's area that a random crop keeps, to be resized to all of it; None crops nothing."""
    color_jitter: float = 0.0
    """Brightness, contrast and saturation are multiplied by up to 1 ± this, each sample's in an order of its own."""
    num_frames: int | None = None
    """Train on so many frames of a recording, drawn anew for every batch and kept in order; None: on all."""
    repeats: int = 1
    """Copies of a sample in an epoch, each augmented anew; the epoch then has as many fewer different samples."""

    operations: tuple[Operation, ...] = ()
    """RandAugment's choices: one is drawn for every sample and round, with replacement."""
    num_operations: int = 1
    """Rounds, RandAugment's n."""
    operation_probability: float = 0.5
    """How often a drawn operation is carried out."""
    magnitude: float | None = 9.0
    """From 0 to 10; None draws it from all of that range, every value alike."""
    magnitude_std: float = 0.0
    """Deviation of a normal distribution around the magnitude, cut at 0 and 10."""

    erase: float = 0.0
    """Probability that a rectangle is set to zero, which is the mean colour once images are normalised."""

    mixup: float = 0.0
    """α of Beta(α, α), from which the weight of a sample against its partner is drawn; 0 is off."""
    cutmix: float = 0.0
    """The same for a pasted box."""
    mix_probability: float = 1.0
    """How often a batch is mixed at all."""
    cutmix_share: float = 0.5
    """Where mixup and cutmix are both on: how often it is cutmix."""
    label_smoothing: float = 0.0
    """Share of every target that is spread over all classes."""

    def __post_init__(self) -> None:
        self._check_operations()
        self._check_crop()
        self._check_numbers()
        self._check_effects()

    def _check_operations(self) -> None:
        given: Any = self.operations
        if not isinstance(given, list | tuple):
            raise FieldError(
                "operations", f"operations must be a tuple of names, got {shown(given)}; write (name,) for one."
            )
        object.__setattr__(self, "operations", tuple(given))
        for name in self.operations:
            if name not in OPERATIONS:
                raise UnknownNameError("operation", name, OPERATIONS)

    def _check_crop(self) -> None:
        scale: Any = self.crop_scale
        if scale is None:
            return
        listed = (
            isinstance(scale, list | tuple) and len(scale) == 2 and all(isinstance(each, int | float) for each in scale)
        )
        if not listed or not 0 < scale[0] <= scale[1] <= 1:
            raise FieldError(
                "crop_scale",
                f"crop_scale must be two shares of the area, 0 < least ≤ most ≤ 1, or None, got {shown(scale)}.",
            )
        object.__setattr__(self, "crop_scale", (float(scale[0]), float(scale[1])))

    def _check_numbers(self) -> None:
        for name in ("num_operations", "repeats", "num_frames"):
            value: Any = getattr(self, name)
            if value is None and name == "num_frames":
                continue
            if not is_integer(value) or value < 1:
                raise FieldError(name, f"{name} must be an integer of at least 1, got {shown(value)}.")
        if not isinstance(self.alternate_flip, bool):
            raise FieldError(
                "alternate_flip", f"alternate_flip must be True or False, got {shown(self.alternate_flip)}."
            )
        self._check_range("color_jitter", 1.0)
        for name in ("flip", "operation_probability", "erase", "mix_probability", "cutmix_share", "label_smoothing"):
            self._check_range(name, 1.0)
        for name in ("magnitude_std", "mixup", "cutmix"):
            self._check_range(name, inf)
        if self.magnitude is not None:
            self._check_range("magnitude", 10.0)

    def _check_range(self, name: str, highest: float) -> None:
        value: Any = getattr(self, name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        if not number or not 0 <= value <= highest:
            wanted = f"between 0 and {highest:g}" if isfinite(highest) else "finite and at least 0"
            raise FieldError(name, f"{name} must be {wanted}, got {shown(value)}.")

    def _check_effects(self) -> None:
        idle: dict[str, str] = {}
        if not (self.mixup and self.cutmix):
            idle["cutmix_share"] = "unless mixup and cutmix are both on"
        if not (self.mixup or self.cutmix):
            idle["mix_probability"] = "without mixup or cutmix"
        if self.magnitude is None:
            idle["magnitude_std"] = "where magnitude is None"
        if self.alternate_flip:
            idle["flip"] = "with alternate_flip"
        if not self.operations:
            names = ("num_operations", "operation_probability", "magnitude", "magnitude_std")
            idle |= dict.fromkeys(names, "without operations")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in idle and value != field.default:
                raise FieldError(
                    field.name,
                    f"{field.name} has no effect {idle[field.name]}, got {shown(value)}; leave it {field.default!r}.",
                )


CIFAR = Augmentation(
    flip=0.5,
    operations=("equalize", "rotate", "shear_x", "translate_x", "translate_y"),
    magnitude=9.0,
    magnitude_std=0.4,
    erase=0.25,
    mixup=0.5,
    label_smoothing=0.1,
)
"""CIFAR-10 and CIFAR-100: timm's rand-m9-n1-mstd0.4-inc1, cut to five operations."""

IMAGENET = Augmentation(
    flip=0.5,
    operations=(*get_args(Geometric), *get_args(Colour)),
    num_operations=2,
    magnitude=9.0,
    magnitude_std=0.5,
    erase=0.25,
    mixup=0.8,
    cutmix=1.0,
    label_smoothing=0.1,
)
"""ImageNet: timm's rand-m9-mstd0.5-inc1, whose n is 2."""

DVS128 = Augmentation(
    operations=("identity", "shear_x", "translate_x", "translate_y", "rotate", "cutout"),
    operation_probability=1.0,
    magnitude=None,
    mixup=0.5,
    mix_probability=0.5,
    label_smoothing=0.1,
)
"""DVS128 Gesture: nothing that swaps left and right, which are classes there."""

CIFAR10_DVS = Augmentation(
    flip=0.5,
    operations=DVS128.operations,
    operation_probability=1.0,
    magnitude=None,
    mixup=0.5,
    mix_probability=0.5,
    label_smoothing=0.1,
)
"""CIFAR10-DVS: the same, and mirror images."""
