"""ModelConfig: everything that decides a network's shape and mathematics, validated when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from numbers import Integral, Real
from typing import Any, get_args

from spikformer.vocabulary import Attention, LinearInit, Neuron, Surrogate, did_you_mean, shown

_LARGEST = 1_000_000  # of any number: what is beyond is a mistake, or a file that means harm
_MOST_STAGES = 20  # of patch splitting: 2^20 is beyond _LARGEST
_LARGEST_ACTIVATION = 1 << 28  # numbers of one sample in one layer, over all time steps: 1 GiB in float32
_SPIKING_FIELDS = ("tau", "v_threshold", "attention_v_threshold", "v_reset", "surrogate", "surrogate_alpha")
_IDLE_FIELDS = {"if": ("tau",), "relu": _SPIKING_FIELDS, "gelu": _SPIKING_FIELDS}


@dataclass(frozen=True)
class ModelConfig:
    """One Spikformer. The defaults are Spikformer-4-384 on CIFAR-10; `presets` holds every published model.

    Symbols of the paper: T `time_steps`, D `embed_dim`, L `depth`, h `num_heads`, s `attention_scale`,
    τ `tau`, V_th `v_threshold`, V_reset `v_reset`, α `surrogate_alpha`.
    """

    image_size: tuple[int, int] | None = (32, 32)
    """Height and width; an int means both; None admits any size that the pooling divides."""
    in_channels: int = 3
    num_classes: int = 10
    time_steps: int = 4
    """Times a still image is shown. Event frames bring their own number of steps."""

    embed_dim: int = 384
    depth: int = 4
    num_heads: int = 12
    mlp_ratio: float = 4.0
    pool_stages: tuple[bool, ...] = (False, False, True, True)
    """One entry per block of the patch splitting: whether it ends in a pool that halves height and width."""

    attention: Attention = "ssa"
    attention_scale: float = 0.125
    """s in Q Kᵀ V · s. The softmax variants scale by 1/√d instead, and `none` has nothing to scale."""
    learnable_scale: bool = False
    qk_pool: int = 1
    """Kernel of a max-pool along the tokens of Q and K; 1 is none."""
    qkv_bias: bool = True

    neuron: Neuron = "lif"
    """`relu` and `gelu` make the conventional (ANN) twin."""
    tau: float = 2.0
    """Membrane time constant of `lif`, its initial value for `plif`."""
    v_threshold: float = 1.0
    attention_v_threshold: float = 0.5
    """Threshold of the one neuron that reads Q Kᵀ V · s."""
    v_reset: float = 0.0
    surrogate: Surrogate = "sigmoid"
    surrogate_alpha: float = 4.0

    linear_init: LinearInit = "trunc_normal"
    """How Q, K, V, projection and MLP start; the head is always truncated normal (σ = 0.02) with zero bias."""

    def __post_init__(self) -> None:
        self._normalise()
        self._check_numbers()
        self._check_choices()
        self._check_shapes()
        self._check_effects()

    # What follows from the fields.

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
        """How many numbers the largest layer has for one sample, over all its time steps.

        A forward pass of a sample takes a few times this memory, besides the weights. An open `image_size` counts as
        128×128, or one patch if that is larger.
        """
        height, width = self.image_size or 2 * (-(-128 // self.patch_size) * self.patch_size,)
        pixels, sizes = height * width, [self.in_channels * height * width, self.num_classes]
        for channels, pooled in zip(self.stage_channels, self.pool_stages, strict=True):
            sizes.append(channels * pixels)
            pixels //= 4 if pooled else 1
        sizes.append(pixels * max(self.embed_dim, self.mlp_dim))
        if self.attention in ("softmax", "softmax_float_value"):
            sizes.append(self.num_heads * pixels**2)
        return self.time_steps * max(sizes)

    # To and from plain data, for files and overrides.

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """The config that `to_dict` was called on: every field must be there, so that no default creeps in."""
        check_field_names(values)
        missing = [field.name for field in fields(cls) if field.name not in values]
        if missing:
            raise ValueError(f"ModelConfig.from_dict needs every field, {missing[0]!r} is missing.")
        return cls(**values)

    def override(self, **values: Any) -> ModelConfig:
        """A copy with some fields changed; an unknown name is refused with the nearest known one."""
        check_field_names(values)
        return replace(self, **values)

    # Validation: each sentence says what was expected, what was given and what to do.

    def _normalise(self) -> None:
        for field in fields(self):  # NumPy's numbers are welcome, and become Python's
            value: Any = getattr(self, field.name)
            if isinstance(value, Real) and type(value) not in (bool, int, float):
                object.__setattr__(self, field.name, int(value) if isinstance(value, Integral) else float(value))
        size: Any = self.image_size  # an int is welcome, too
        if isinstance(size, int) and not isinstance(size, bool):
            size = (size, size)
        if size is not None:
            if not isinstance(size, list | tuple) or len(size) != 2:
                raise ValueError(f"image_size must be an int, (height, width) or None, got {shown(size)}.")
            object.__setattr__(self, "image_size", tuple(size))
        stages: Any = self.pool_stages
        if not isinstance(stages, list | tuple) or not 1 <= len(stages) <= _MOST_STAGES:
            raise ValueError(
                f"pool_stages must list one true or false per patch-splitting block, 1 to {_MOST_STAGES} of them, "
                f"got {shown(stages)}; "
                "CIFAR uses (False, False, True, True)."
            )
        object.__setattr__(self, "pool_stages", tuple(stages))

    def _check_numbers(self) -> None:
        counts = ("in_channels", "num_classes", "time_steps", "embed_dim", "depth", "num_heads", "qk_pool")
        for name in counts:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {shown(value)}.")
            if value > _LARGEST:
                raise ValueError(f"{name} must be at most {_LARGEST:,}, got {shown(value)}.")
        for side in self.image_size or ():
            if not isinstance(side, int) or isinstance(side, bool) or not 1 <= side <= _LARGEST:
                allowed = f"from 1 to {_LARGEST:,}"
                raise ValueError(f"image_size must hold whole numbers {allowed}, got {shown(self.image_size)}.")
        if self.v_reset is None:
            raise ValueError("v_reset must be a number, got None: soft reset is not supported yet.")
        reals = ("mlp_ratio", "attention_scale", "tau", "v_threshold", "attention_v_threshold", "v_reset")
        for name in (*reals, "surrogate_alpha"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not -_LARGEST <= value <= _LARGEST:
                raise ValueError(f"{name} must be a finite number, at most {_LARGEST:,}, got {shown(value)}.")
        for name in ("mlp_ratio", "attention_scale", "surrogate_alpha"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)!r}.")
        if self.tau < 1 or (self.neuron == "plif" and self.tau == 1):
            bound = "above 1 for plif" if self.neuron == "plif" else "at least 1"
            raise ValueError(f"tau must be {bound}, got {self.tau!r}: a smaller one would overshoot its input.")
        for name in ("v_threshold", "attention_v_threshold"):
            if getattr(self, name) <= self.v_reset:
                raise ValueError(
                    f"{name} must be above v_reset ({self.v_reset!r}), got {getattr(self, name)!r}: "
                    "a neuron at rest would fire for ever."
                )

    def _check_choices(self) -> None:
        choices = {"attention": Attention, "neuron": Neuron, "surrogate": Surrogate, "linear_init": LinearInit}
        for name, kind in choices.items():
            value = getattr(self, name)
            if value not in get_args(kind):
                raise ValueError(f"{name} must be one of {', '.join(get_args(kind))}, got {shown(value)}.")
        flags = {"learnable_scale": self.learnable_scale, "qkv_bias": self.qkv_bias}
        flags |= {f"pool_stages[{index}]": flag for index, flag in enumerate(self.pool_stages)}
        for name, flag in flags.items():
            if not isinstance(flag, bool):
                raise ValueError(f"{name} must be True or False, got {shown(flag)}.")

    def _check_shapes(self) -> None:
        halvings = 2 ** (len(self.pool_stages) - 1)
        if self.embed_dim % halvings:
            raise ValueError(
                f"embed_dim must be divisible by {halvings}, because {len(self.pool_stages)} patch-splitting blocks "
                f"halve it {len(self.pool_stages) - 1} times, got {self.embed_dim}."
            )
        if self.embed_dim % self.num_heads:
            fitting = [heads for heads in range(1, 129) if self.embed_dim % heads == 0]
            nearest = min(fitting, key=lambda heads: abs(heads - self.num_heads))
            raise ValueError(
                f"embed_dim ({self.embed_dim}) must be divisible by num_heads, got {self.num_heads}; try {nearest}."
            )
        if abs(self.embed_dim * self.mlp_ratio - self.mlp_dim) > 1e-6 or self.mlp_dim < 1:
            raise ValueError(
                f"embed_dim × mlp_ratio must be a whole number of units, got {self.embed_dim} × {self.mlp_ratio}."
            )
        if self.image_size is not None:
            check_divisible(self.image_size, self.patch_size)
        if self.qk_pool % 2 == 0:
            raise ValueError(f"qk_pool must be odd, so that the number of tokens stays, got {self.qk_pool}.")
        if self.largest_activation > _LARGEST_ACTIVATION:
            raise ValueError(
                f"time_steps × the size of the largest layer must be at most {_LARGEST_ACTIVATION:,}, "
                f"got {self.largest_activation:,}; take fewer time steps, smaller images or a narrower model."
            )

    def _check_effects(self) -> None:
        for field in fields(self):
            idle = field.name in _IDLE_FIELDS.get(self.neuron, ())
            if idle and getattr(self, field.name) != field.default:
                raise ValueError(f"{field.name} has no effect with neuron={self.neuron!r}; leave it {field.default!r}.")
        if self.learnable_scale and self.attention in ("softmax", "softmax_float_value", "none"):
            raise ValueError(f"learnable_scale has no effect with attention={self.attention!r}; leave it False.")
        if self.qk_pool > 1 and self.attention == "none":
            raise ValueError("qk_pool has no effect with attention='none', which has no Q and K; leave it 1.")


def check_divisible(image_size: tuple[int, int], patch_size: int) -> None:
    if any(side % patch_size for side in image_size):
        height, width = image_size
        nearest = "×".join(str(max(1, round(side / patch_size)) * patch_size) for side in image_size)
        raise ValueError(
            f"Image height and width must be divisible by the patch size {patch_size}, got {height}×{width}; "
            f"the nearest size that fits is {nearest}."
        )


def check_field_names(values: Mapping[str, Any]) -> None:
    known = [field.name for field in fields(ModelConfig)]
    for name in values:
        if name not in known:
            hint = did_you_mean(name, known, f"known fields are {', '.join(known)}.")
            raise ValueError(f"ModelConfig has no field {shown(name)}; {hint}")
