"""Configs: everything that decides a network's shape and mathematics, validated when they are made.

`NetworkConfig` holds what all architectures share, `ModelConfig` is Spikformer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from typing import Any, ClassVar, Self, get_args

from spikformer.validation import (
    LARGEST,
    FieldError,
    check_field_names,
    check_fields,
    choice,
    count,
    flag,
    is_integer,
    number,
)
from spikformer.vocabulary import Attention, LinearInit, Neuron, Surrogate, shown

_MOST_STAGES = 20  # of patch splitting: 2^20 is beyond LARGEST
_LARGEST_ACTIVATION = 1 << 28  # numbers of one sample in one layer, over all time steps: 1 GiB in float32
_SOFTMAX = ("softmax", "softmax_float_value")
_CONVENTIONAL = ("relu", "gelu")
_CHOICES: dict[str, list[str]] = {"neuron": [*get_args(Neuron)], "attention": [*get_args(Attention)]}


def add_choice(field: str, word: str) -> None:
    """Let configs name a neuron or an attention variant that was registered from outside the package."""
    if word not in _CHOICES[field]:
        _CHOICES[field].append(word)


@dataclass(frozen=True)
class NetworkConfig:
    """What the configs of all architectures share: input, classes, time and neurons.

    An architecture's own config derives from it, adds its fields, and extends `check`, `patch_size`,
    `largest_activation` and `fewest_tensors`.
    """

    image_size: tuple[int, int] | None = (32, 32)
    """Height and width; an int means both; None admits any size that the pooling divides."""
    in_channels: int = count(3)
    num_classes: int = count(10, least=0)
    """0 leaves the head out: the model then returns features."""
    time_steps: int = count(4)
    """How often a static image is repeated. Event frames bring their own number of steps."""

    neuron: Neuron = choice("lif", _CHOICES["neuron"])
    """`relu` and `gelu` make the conventional (ANN) twin."""
    tau: float = number(2.0, least=1)
    """Membrane time constant of `lif`, its initial value for `plif`."""
    v_threshold: float = number(1.0)
    v_reset: float | None = number(0.0, optional=True)
    """Voltage after a spike; None is soft reset, which subtracts the threshold."""
    surrogate: Surrogate = choice("sigmoid", get_args(Surrogate))
    surrogate_alpha: float = number(4.0, above=0)
    detach_reset: bool = flag(True)
    """Whether the backward pass takes the spike in the reset for a constant."""

    ADDED: ClassVar[Mapping[str, Any]] = {"detach_reset": True}
    """Fields that files of earlier releases lack, and what their networks did."""

    def __post_init__(self) -> None:
        self._normalise_size()
        check_fields(self)
        self.check()
        if self.largest_activation > _LARGEST_ACTIVATION:
            raise FieldError(
                "time_steps",
                f"time_steps × the size of the largest layer must be at most {_LARGEST_ACTIVATION:,}, "
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
        idle = spiking if self.neuron in _CONVENTIONAL else ("tau",) if self.neuron == "if" else ()
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
    def largest_activation(self) -> int:
        """How many numbers the largest layer has for one sample, over all its time steps.

        A forward pass of a sample takes a few times this memory, besides the weights. An open `image_size` counts as
        128×128, or one patch if that is larger.
        """
        height, width = self._image_size_or_default()
        return self.time_steps * max(self.in_channels * height * width, self.num_classes)

    @property
    def fewest_tensors(self) -> int:
        """A bound on the tensors of a network from below, known before it is built: of a file that means harm, too."""
        return 1

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


@dataclass(frozen=True)
class ModelConfig(NetworkConfig):
    """One Spikformer. The defaults are Spikformer-4-384 on CIFAR-10; `presets` holds every published model.

    Symbols of the paper: T `time_steps`, D `embed_dim`, L `depth`, h `num_heads`, s `attention_scale`,
    τ `tau`, V_th `v_threshold`, V_reset `v_reset`, α `surrogate_alpha`.
    """

    embed_dim: int = count(384)
    depth: int = count(4)
    num_heads: int = count(12)
    mlp_ratio: float = number(4.0, above=0)
    pool_stages: tuple[bool, ...] = (False, False, True, True)
    """One entry per block of the patch splitting: whether it ends in a pool that halves height and width."""

    attention: Attention = choice("ssa", _CHOICES["attention"])
    attention_scale: float = number(0.125, above=0)
    """s in Q Kᵀ V · s. The softmax variants scale by 1/√d instead, and `none` has nothing to scale."""
    learnable_scale: bool = flag(False)
    qk_pool: int = count(1)
    """Kernel of a max-pool along the tokens of Q and K; 1 is none."""
    qkv_bias: bool = flag(True)
    attention_v_threshold: float = number(0.5)
    """Threshold of the one neuron that reads Q Kᵀ V · s."""

    linear_init: LinearInit = choice("trunc_normal", get_args(LinearInit))
    """How Q, K, V, projection and MLP start; the head is always truncated normal (σ = 0.02) with zero bias."""

    def __post_init__(self) -> None:
        stages: Any = self.pool_stages
        listed = isinstance(stages, list | tuple) and 1 <= len(stages) <= _MOST_STAGES
        if not listed or not all(isinstance(pooled, bool) for pooled in stages):
            raise FieldError(
                "pool_stages",
                f"pool_stages must list True or False for each patch-splitting block, 1 to {_MOST_STAGES} of them, "
                f"got {shown(stages)}; CIFAR uses (False, False, True, True).",
            )
        object.__setattr__(self, "pool_stages", tuple(stages))
        super().__post_init__()

    @property
    def title(self) -> str:
        return f"Spikformer-{self.depth}-{self.embed_dim}"

    @property
    def patch_size(self) -> int:
        return 2 ** sum(self.pool_stages)

    @property
    def stage_channels(self) -> tuple[int, ...]:
        """Width of each patch-splitting block: … D/4, D/2, D."""
        last = len(self.pool_stages) - 1
        return tuple(self.embed_dim // 2 ** (last - stage) for stage in range(last + 1))

    @property
    def head_dim(self) -> int:
        return self.embed_dim // self.num_heads

    @property
    def mlp_dim(self) -> int:
        return round(self.embed_dim * self.mlp_ratio)

    @property
    def num_tokens(self) -> int | None:
        return None if self.image_size is None else prod(side // self.patch_size for side in self.image_size)

    @property
    def largest_activation(self) -> int:
        pixels, sizes = prod(self._image_size_or_default()), []
        for channels, pooled in zip(self.stage_channels, self.pool_stages, strict=True):
            sizes.append(channels * pixels)
            pixels //= 4 if pooled else 1
        sizes.append(pixels * max(self.embed_dim, self.mlp_dim))
        if self.attention in _SOFTMAX:
            sizes.append(self.num_heads * pixels**2)
        return max(super().largest_activation, self.time_steps * max(sizes))

    @property
    def fewest_tensors(self) -> int:
        return self.depth + len(self.pool_stages)

    def check(self) -> None:
        super().check()
        halvings = 2 ** (len(self.pool_stages) - 1)
        if self.embed_dim % halvings:
            raise FieldError(
                "embed_dim",
                f"embed_dim must be divisible by {halvings}, because {len(self.pool_stages)} patch-splitting blocks "
                f"halve it {len(self.pool_stages) - 1} times, got {self.embed_dim}.",
            )
        if self.embed_dim % self.num_heads:
            fitting = [heads for heads in range(1, 129) if self.embed_dim % heads == 0]
            nearest = min(fitting, key=lambda heads: abs(heads - self.num_heads))
            raise FieldError(
                "num_heads",
                f"embed_dim ({self.embed_dim}) must be divisible by num_heads, got {self.num_heads}; try {nearest}.",
            )
        if abs(self.embed_dim * self.mlp_ratio - self.mlp_dim) > 1e-6 or self.mlp_dim < 1:
            raise FieldError(
                "mlp_ratio", f"embed_dim × mlp_ratio must be an integer, got {self.embed_dim} × {self.mlp_ratio}."
            )
        if self.qk_pool % 2 == 0:
            raise FieldError("qk_pool", f"qk_pool must be odd, which keeps the number of tokens, got {self.qk_pool}.")
        if self.learnable_scale and self.attention in (*_SOFTMAX, "none"):
            raise FieldError(
                "learnable_scale", f"learnable_scale has no effect with attention={self.attention!r}; leave it False."
            )
        if self.qk_pool > 1 and self.attention == "none":
            raise FieldError(
                "qk_pool", "qk_pool has no effect with attention='none', which has no Q and K; leave it 1."
            )


def check_divisible(image_size: tuple[int, int], patch_size: int) -> None:
    if any(side % patch_size for side in image_size):
        height, width = image_size
        nearest = "×".join(str(max(1, round(side / patch_size)) * patch_size) for side in image_size)
        raise FieldError(
            "image_size",
            f"Image height and width must be divisible by the patch size {patch_size}, got {height}×{width}; "
            f"the nearest size that fits is {nearest}.",
        )
