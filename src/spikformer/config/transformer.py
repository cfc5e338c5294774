"""Configs of spiking transformers of one width: Spikformer, Spikingformer and the Spike-driven Transformer.

Each decides everything about its network's shape and mathematics; `TransformerConfig` is what they share, and
`AttentionConfig` what they share with transformers in stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Literal, Self, get_args

from spikformer.config.network import CHOICES, Attention, LinearInit, NetworkConfig
from spikformer.errors import FieldError, shown
from spikformer.validation import choice, count, flag, number

PoolAfter = Literal["neuron", "norm"]

SOFTMAX = ("softmax", "softmax_float_value")
DILATED = "spike_driven_dilated"
_MOST_STAGES = 20  # of patch splitting: 2^20 is beyond any size
_WITHOUT_MAPS = ("none", "spike_driven", DILATED, "token")
_PLAIN_AND_CML = {"": {"pool_after": "neuron"}, "cml_": {"pool_after": "norm"}}
_UNSCALED = (*SOFTMAX, *_WITHOUT_MAPS)


@dataclass(frozen=True)
class AttentionConfig(NetworkConfig):
    """A spiking transformer of any layout, whose last tokens are D = `embed_dim` wide.

    Symbols of the paper: T `time_steps`, D `embed_dim`, h `num_heads`, s `attention_scale`, τ `tau`,
    V_th `v_threshold`, V_reset `v_reset`, α `surrogate_alpha`.
    """

    embed_dim: int = count(384)
    num_heads: int = count(12)
    mlp_ratio: float = number(4.0, above=0)
    """Width of an MLP's hidden layer over that of its input."""

    attention: Attention = choice("ssa", CHOICES["attention"])
    attention_scale: float = number(0.125, above=0)
    """s in Q Kᵀ V · s. The softmax variants scale by 1/√d instead; `none`, `spike_driven` and
    `token` have nothing to scale."""
    attention_v_threshold: float = number(0.5)
    """Threshold of the one neuron that reads the product of Q, K and V."""

    COMPARED: ClassVar[Mapping[str, Mapping[str, Any]]] = {"": {}}

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        attending = {"num_heads": like.num_heads, "mlp_ratio": like.mlp_ratio, "embed_dim": width}
        return super().sizes_like(like, width) | attending

    def miniature(self) -> Self:
        divides = self.num_heads <= 8 and 64 % self.num_heads == 0
        return super().miniature().override(embed_dim=64 if divides else 8 * self.num_heads)

    @property
    def head_dim(self) -> int:
        return self.embed_dim // self.num_heads

    @property
    def mlp_dim(self) -> int:
        return round(self.embed_dim * self.mlp_ratio)

    def check(self) -> None:
        super().check()
        if self.attention == DILATED and self.image_size is None:
            raise FieldError(
                "image_size",
                f"image_size must be given with attention={DILATED!r}, whose filter needs rows and columns, got None.",
            )

    def check_width(self, width: int, has_heads: bool = True) -> None:
        """Raise FieldError unless heads and MLP fit tokens of a width."""
        if has_heads and width % self.num_heads:
            fitting = [heads for heads in range(1, 129) if width % heads == 0]
            nearest = min(fitting, key=lambda heads: abs(heads - self.num_heads))
            name = "embed_dim" if width == self.embed_dim else f"a stage's width with embed_dim {self.embed_dim}"
            raise FieldError(
                "num_heads", f"{name} ({width}) must be divisible by num_heads, got {self.num_heads}; try {nearest}."
            )
        hidden = width * self.mlp_ratio
        if abs(hidden - round(hidden)) > 1e-6 or round(hidden) < 1:
            raise FieldError("mlp_ratio", f"width × mlp_ratio must be an integer, got {width} × {self.mlp_ratio}.")

    @staticmethod
    def mlp_parameters(width: int, hidden: int) -> int:
        """Of two linear layers with biases, and their norms."""
        return 2 * width * hidden + 3 * (hidden + width)


@dataclass(frozen=True)
class TransformerConfig(AttentionConfig):
    """Patch splitting, then L = `depth` blocks of attention and MLP, all of one width."""

    depth: int = count(4)
    pool_stages: tuple[bool, ...] = (False, False, True, True)
    """One entry per block of the patch splitting: whether it has a pool that halves height and width."""

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

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        return super().sizes_like(like, width) | {"depth": like.depth, "pool_stages": like.pool_stages}

    @property
    def patch_size(self) -> int:
        return 2 ** sum(self.pool_stages)

    @property
    def stage_channels(self) -> tuple[int, ...]:
        """Width of each patch-splitting block: … D/4, D/2, D."""
        last = len(self.pool_stages) - 1
        return tuple(self.embed_dim // 2 ** (last - stage) for stage in range(last + 1))

    @property
    def num_neuron_layers(self) -> int:
        """With spikes in Q, K and V: those of patches and positions, or of the head, and seven in a block."""
        return len(self.pool_stages) + 1 + 7 * self.depth

    @property
    def num_parameters(self) -> int:
        """Of the network, from its sizes alone."""
        time_constants = self.num_neuron_layers if self.neuron == "plif" else 0
        width, hidden = self.embed_dim, self.mlp_dim
        convolutions = [*pairwise((self.in_channels, *self.stage_channels)), (width, width)]
        stem = sum(9 * inputs * outputs + 2 * outputs for inputs, outputs in convolutions)  # 2: a norm's scale, shift
        attention = 4 * width * width + 9 * width
        blocks = self.depth * (attention + self.mlp_parameters(width, hidden))
        return stem + blocks + time_constants + (width + 1) * self.num_classes

    @property
    def largest_activation(self) -> int:
        pixels, sizes = prod(self._image_size_or_default()), []
        for channels, pooled in zip(self.stage_channels, self.pool_stages, strict=True):
            sizes.append(channels * pixels)
            pixels //= 4 if pooled else 1
        sizes.append(pixels * max(self.embed_dim, self.mlp_dim))
        if self.attention in SOFTMAX:
            sizes.append(self.num_heads * pixels**2)
        return max(super().largest_activation, self.time_steps * max(sizes))

    @property
    def fewest_tensors(self) -> int:
        return self.depth + len(self.pool_stages)

    def miniature(self) -> Self:
        return super().miniature().override(depth=min(self.depth, 2))

    def check(self) -> None:
        super().check()
        halvings = 2 ** (len(self.pool_stages) - 1)
        if self.embed_dim % halvings:
            raise FieldError(
                "embed_dim",
                f"embed_dim must be divisible by {halvings}, because {len(self.pool_stages)} patch-splitting blocks "
                f"halve it {len(self.pool_stages) - 1} times, got {self.embed_dim}.",
            )
        self.check_width(self.embed_dim)


@dataclass(frozen=True)
class ModelConfig(TransformerConfig):
    """One Spikformer. The defaults are Spikformer-4-384 on CIFAR-10; `presets` holds every published model."""

    pool_after: PoolAfter = choice("neuron", get_args(PoolAfter))
    """Conv → BN → SN → pool, or Conv → BN → pool → SN (`norm`): CML, whose neurons fire at the pooled resolution."""
    learnable_scale: bool = flag(False)
    qk_pool: int = count(1)
    """Kernel of a max-pool along the tokens of Q and K; 1 is none."""
    qkv_bias: bool = flag(True)
    linear_init: LinearInit = choice("trunc_normal", get_args(LinearInit))
    """How Q, K, V, projection and MLP start; the head is always truncated normal (σ = 0.02) with zero bias."""

    ADDED: ClassVar[Mapping[str, Any]] = {**NetworkConfig.ADDED, "pool_after": "neuron"}
    COMPARED: ClassVar[Mapping[str, Mapping[str, Any]]] = _PLAIN_AND_CML

    @property
    def title(self) -> str:
        return f"{'CML-' * (self.pool_after == 'norm')}Spikformer-{self.depth}-{self.embed_dim}"

    @property
    def num_parameters(self) -> int:
        return super().num_parameters + self.depth * (3 * self.embed_dim * self.qkv_bias + self.learnable_scale)

    def check(self) -> None:
        super().check()
        if self.qk_pool % 2 == 0:
            raise FieldError("qk_pool", f"qk_pool must be odd, which keeps the number of tokens, got {self.qk_pool}.")
        if self.learnable_scale and self.attention in _UNSCALED:
            raise FieldError(
                "learnable_scale", f"learnable_scale has no effect with attention={self.attention!r}; leave it False."
            )
        if self.qk_pool > 1 and self.attention in _WITHOUT_MAPS:
            raise FieldError(
                "qk_pool", f"qk_pool is for Q Kᵀ, which attention={self.attention!r} does not have; leave it 1."
            )


@dataclass(frozen=True)
class SpikingformerConfig(TransformerConfig):
    """One Spikingformer. The defaults are Spikingformer-4-384 on CIFAR-10; `presets` holds every published model."""

    pool_after: PoolAfter = choice("neuron", get_args(PoolAfter))
    """Where pools of the patch splitting act: on spikes (`neuron`), or on membranes before the neuron (`norm`: CML)."""

    COMPARED: ClassVar[Mapping[str, Mapping[str, Any]]] = _PLAIN_AND_CML

    @property
    def num_neuron_layers(self) -> int:
        return super().num_neuron_layers - 1  # its head reads membranes

    @property
    def title(self) -> str:
        return f"{'CML-' * (self.pool_after == 'norm')}Spikingformer-{self.depth}-{self.embed_dim}"


@dataclass(frozen=True)
class SpikeDrivenConfig(TransformerConfig):
    """One Spike-driven Transformer. The defaults are 2-512 on CIFAR-10; `presets` holds every published model.

    All pools of the patch splitting act on spikes but the last one, which acts on the membrane. With `mlp_ratio` 1 the
    MLP has an inner residual sum.
    """

    embed_dim: int = count(512)
    depth: int = count(2)
    num_heads: int = count(8)
    attention: Attention = choice("spike_driven", CHOICES["attention"])
    """`spike_driven_dilated` passes K, V, K ⊙ V and the masked Q through 3×3 max filters, as on CIFAR10-DVS."""

    @property
    def title(self) -> str:
        return f"SpikeDrivenTransformer-{self.depth}-{self.embed_dim}"
