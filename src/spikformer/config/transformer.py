"""TransformerConfig: what Spikformer and its successors share: patch splitting, width, depth, heads and attention."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Literal, Self

from spikformer.config.network import CHOICES, Attention, NetworkConfig
from spikformer.messages import shown
from spikformer.validation import FieldError, choice, count, number

PoolAfter = Literal["neuron", "norm"]

_MOST_STAGES = 20  # of patch splitting: 2^20 is beyond any size
SOFTMAX = ("softmax", "softmax_float_value")
DILATED = "spike_driven_dilated"


@dataclass(frozen=True)
class TransformerConfig(NetworkConfig):
    """A spiking transformer of one width: patch splitting, then blocks of attention and MLP.

    Symbols of the paper: T `time_steps`, D `embed_dim`, L `depth`, h `num_heads`, s `attention_scale`,
    τ `tau`, V_th `v_threshold`, V_reset `v_reset`, α `surrogate_alpha`.
    """

    embed_dim: int = count(384)
    depth: int = count(4)
    num_heads: int = count(12)
    mlp_ratio: float = number(4.0, above=0)
    pool_stages: tuple[bool, ...] = (False, False, True, True)
    """One entry per block of the patch splitting: whether it has a pool that halves height and width."""

    attention: Attention = choice("ssa", CHOICES["attention"])
    attention_scale: float = number(0.125, above=0)
    """s in Q Kᵀ V · s. The softmax variants scale by 1/√d instead; `none` and `spike_driven` have nothing to scale."""
    attention_v_threshold: float = number(0.5)
    """Threshold of the one neuron that reads the product of Q, K and V."""

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
    def num_parameters(self) -> int:
        """Of the network, from its sizes alone; parameters of neurons (`plif`) are not among them."""
        width, hidden = self.embed_dim, self.mlp_dim
        convolutions = [*pairwise((self.in_channels, *self.stage_channels)), (width, width)]
        stem = sum(9 * inputs * outputs + 2 * outputs for inputs, outputs in convolutions)  # 2: a norm's scale, shift
        attention = 4 * width * width + 9 * width
        mlp = 2 * width * hidden + 3 * (hidden + width)
        return stem + self.depth * (attention + mlp) + (width + 1) * self.num_classes

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
        embed_dim = 8 * self.num_heads if self.num_heads > 8 else 64
        return super().miniature().override(embed_dim=embed_dim, depth=min(self.depth, 2))

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
        if self.attention == DILATED and self.image_size is None:
            raise FieldError(
                "image_size",
                f"image_size must be given with attention={DILATED!r}, whose filter needs rows and columns, got None.",
            )
