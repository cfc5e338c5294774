"""NetworkConfig: what the configs of all architectures share, and the inputs that a network with one takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, get_args

from spikformer.errors import FieldError, InputError, shown
from spikformer.validation import LARGEST, check_field_names, check_fields, choice, count, flag, is_integer, number

if TYPE_CHECKING:
    from spikformer.config.transformer import TransformerConfig

Attention = Literal[
    "ssa",
    "identity",
    "relu",
    "leaky_relu",
    "softmax",
    "softmax_float_value",
    "none",
    "random",
    "spike_driven",
    "spike_driven_dilated",
    "token",
]
Neuron = Literal["lif", "if", "plif", "relu", "gelu"]
Surrogate = Literal["sigmoid", "arctan"]
LinearInit = Literal["trunc_normal", "torch"]
Initialisation = Literal["head", "convolutions"]
"""What starts truncated normal (σ = 0.02, zero bias): the head, or convolutions and MLPs; the rest as in PyTorch."""

LARGEST_ACTIVATION = 1 << 28
"""Numbers of one sample in one layer, over all time steps: 1 GiB in float32."""
CONVENTIONAL = ("relu", "gelu")
CHOICES: dict[str, list[str]] = {"neuron": [*get_args(Neuron)], "attention": [*get_args(Attention)]}
"""Words that fields may hold; registering adds to them."""


_ALIKE = (
    *("image_size", "in_channels", "num_classes", "time_steps"),
    *("neuron", "tau", "v_threshold", "v_reset", "surrogate", "surrogate_alpha", "detach_reset"),
)


def add_choice(field: str, word: str) -> None:
    """Let configs name a neuron or an attention variant that was registered from outside the package."""
    if word not in CHOICES[field]:
        CHOICES[field].append(word)


@dataclass(frozen=True)
class NetworkConfig:
    """What the configs of all architectures share: input, classes, time and neurons.

    An architecture's own config derives from it, adds its fields, and extends `check`, `patch_size`,
    `largest_activation`, `fewest_tensors` and `miniature`; to be compared with others, `COMPARED`, `sizes_like` and
    `num_parameters`.
    """

    image_size: tuple[int, int] | None = (32, 32)
    """Height and width; an int means both; None admits any size that the pooling divides."""
    in_channels: int = count(3)
    num_classes: int = count(10, least=0)
    """0 leaves the head out: the model then returns features."""
    time_steps: int = count(4)
    """How often a static image is repeated. Event frames bring their own number of steps."""

    neuron: Neuron = choice("lif", CHOICES["neuron"])
    """`relu` and `gelu` make the conventional (ANN) twin."""
    tau: float = number(2.0, least=1)
    """Membrane time constant of `lif`, its initial value for `plif`."""
    v_threshold: float = number(1.0)
    v_reset: float | None = number(0.0, optional=True)
    """Voltage after a spike; None is soft reset, which subtracts the threshold."""
    surrogate: Surrogate = choice("sigmoid", get_args(Surrogate))
    surrogate_alpha: float = number(4.0, above=0)
    detach_reset: bool = flag(True)
    """Whether the backward pass treats the spike in the reset as a constant."""

    ADDED: ClassVar[Mapping[str, Any]] = {"detach_reset": True}
    """Fields that files of earlier releases lack, and what their networks did."""
    COMPARED: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Networks of this kind that comparisons of architectures have, each with the fields that make it: what stands
    before the architecture's name, "" for the plain one. Without any, it is left out."""

    def __post_init__(self) -> None:
        self._normalise_size()
        check_fields(self)
        self.check()
        if self.largest_activation > LARGEST_ACTIVATION:
            raise FieldError(
                "time_steps",
                f"time_steps × the size of the largest layer must be at most {LARGEST_ACTIVATION:,}, "
                f"got {self.largest_activation:,}; take fewer time steps, smaller images or a narrower model.",
            )

    # What an architecture's own config says of it.

    def check(self) -> None:
        """Raise FieldError where fields do not fit each other."""
        if self.neuron == "plif" and self.tau == 1:
            raise FieldError("tau", "tau must be above 1 for plif, got 1: 1/τ = σ(w) never reaches 1.")
        for name in self._thresholds():
            if getattr(self, name) <= (self.v_reset or 0.0):
                raise FieldError(
                    name,
                    f"{name} must be above v_reset ({self.v_reset!r}), got {getattr(self, name)!r}: "
                    "a neuron at rest would never stop firing.",
                )
        spiking = ("tau", *self._thresholds(), "v_reset", "surrogate", "surrogate_alpha", "detach_reset")
        idle = spiking if self.neuron in CONVENTIONAL else ("tau",) if self.neuron == "if" else ()
        for field in fields(self):
            if field.name in idle and getattr(self, field.name) != field.default:
                raise FieldError(
                    field.name,
                    f"{field.name} has no effect with neuron={self.neuron!r}; leave it {field.default!r}.",
                )
        if self.image_size is not None:
            check_divisible(self.image_size, self.patch_size)

    @property
    def title(self) -> str:
        """What people call the network: "Spikformer-4-384"."""
        return type(self).__name__.removesuffix("Config")

    @property
    def patch_size(self) -> int:
        """Height and width of an image must be multiples of it."""
        return 1

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the last map, whose positions are tokens; None where the image size is open."""
        if self.image_size is None:
            return None
        height, width = self.image_size
        return height // self.patch_size, width // self.patch_size

    @property
    def num_tokens(self) -> int | None:
        return None if self.grid is None else prod(self.grid)

    @property
    def largest_activation(self) -> int:
        """How many numbers the largest layer has for one sample, over all its time steps.

        A forward pass of a sample takes a few times this memory, besides the weights. An open `image_size` counts as
        128×128, or one patch if that is larger.
        """
        height, width = self._image_size_or_default()
        return self.time_steps * max(self.in_channels * height * width, self.num_classes)

    def check_sample(self, size: tuple[int, int], time_steps: int) -> None:
        """Raise FieldError where a sample of this size and so many steps does not fit, or would take too much."""
        self.override(image_size=size, time_steps=time_steps)

    @property
    def mixes_samples(self) -> bool:
        """Whether a sample's result depends on the rest of its batch: such a network has no streams and no engine."""
        return False

    @property
    def fewest_tensors(self) -> int:
        """A lower bound on the number of tensors of a network, known before it is built, for a malicious file, too."""
        return 1

    def miniature(self) -> Self:
        """The same mathematics in a small network on 3×4 patches, for checks and tests."""
        image_size = (3 * self.patch_size, 4 * self.patch_size)
        return replace(self, image_size=image_size, time_steps=min(self.time_steps, 4))

    @property
    def num_parameters(self) -> int | None:
        """Of the network, from its sizes alone; None where an architecture does not say."""
        return None

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        """Fields of a network of this kind, `width` wide: inputs, neurons and depth are another's."""
        return {name: getattr(like, name) for name in _ALIKE}

    # To and from plain data, for files and overrides.

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config that `to_dict` was called on: every field must be there, so that no default creeps in."""
        check_field_names(cls, values)
        values = {**cls.ADDED, **values}
        missing = [field.name for field in fields(cls) if field.name not in values]
        if missing:
            raise FieldError(missing[0], f"{cls.__name__}.from_dict needs every field, {missing[0]!r} is missing.")
        return cls(**values)

    def override(self, **values: Any) -> Self:
        """A copy with some fields changed."""
        check_field_names(type(self), values)
        return replace(self, **values)

    def _thresholds(self) -> list[str]:
        return [field.name for field in fields(self) if field.name.endswith("v_threshold")]

    def _image_size_or_default(self) -> tuple[int, int]:
        side = -(-128 // self.patch_size) * self.patch_size
        return self.image_size or (side, side)

    def _normalise_size(self) -> None:
        size: Any = (self.image_size, self.image_size) if is_integer(self.image_size) else self.image_size
        if size is None:
            return
        sides = isinstance(size, list | tuple) and len(size) == 2
        if not sides or not all(is_integer(side) and 1 <= side <= LARGEST for side in size):
            raise FieldError(
                "image_size",
                f"image_size must be an int or (height, width), from 1 to {LARGEST:,}, or None, got {shown(size)}.",
            )
        object.__setattr__(self, "image_size", tuple(size))


def check_divisible(image_size: tuple[int, int], patch_size: int) -> None:
    if any(side % patch_size for side in image_size):
        height, width = image_size
        nearest = "×".join(str(max(1, round(side / patch_size)) * patch_size) for side in image_size)
        raise FieldError(
            "image_size",
            f"Image height and width must be divisible by the patch size {patch_size}, got {height}×{width}; "
            f"the nearest size that fits is {nearest}.",
        )


class NetworkShape(Protocol):
    """What goes into a network and comes out: a config, or a program of the engine."""

    @property
    def in_channels(self) -> int: ...
    @property
    def num_classes(self) -> int: ...
    @property
    def time_steps(self) -> int: ...
    @property
    def image_size(self) -> tuple[int, int] | None: ...
    @property
    def patch_size(self) -> int: ...
    def check_sample(self, size: tuple[int, int], time_steps: int) -> None: ...


def check_frames(shape: Sequence[int], config: NetworkShape) -> None:
    """Static images [B, C, H, W] or event frames [T, B, C, H, W], of the model's size.

    Frames bring their own T, so a batch with samples first cannot be told from one with steps first.
    """
    if len(shape) not in (4, 5):
        expected = "images [B, C, H, W] or event frames [T, B, C, H, W]"
        got = f"{len(shape)} dimensions {list(shape)}"
        raise InputError("dimensions", expected, got, "a single image needs x[None]")
    check_frame(shape, config)


def check_frame(shape: Sequence[int], config: NetworkShape) -> None:
    """Something in every dimension, the model's channels, and its height and width last."""
    if 0 in shape:
        raise InputError("batch", "at least one sample and one step", f"an empty batch {list(shape)}")
    *_, channels, height, width = shape
    if channels != config.in_channels:
        raise InputError("channels", f"{config.in_channels} channels", f"{channels} in {list(shape)}")
    if config.image_size is None:
        check_divisible((height, width), config.patch_size)
    elif (height, width) != config.image_size:
        wanted_height, wanted_width = config.image_size
        fix = "resize them"
        if not (height % config.patch_size or width % config.patch_size):
            fix += f", or make the model with image_size=({height}, {width})"
        raise InputError("size", f"images of {wanted_height}×{wanted_width}", f"{height}×{width}", fix)
