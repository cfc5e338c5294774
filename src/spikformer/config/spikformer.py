"""ModelConfig: everything that decides a Spikformer's shape and mathematics."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, get_args

from spikformer.config.network import CHOICES, Attention, LinearInit, NetworkConfig
from spikformer.messages import shown
from spikformer.validation import FieldError, choice, count, flag, number

_MOST_STAGES = 20  # of patch splitting: 2^20 is beyond any size
_SOFTMAX = ("softmax", "softmax_float_value")


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

    attention: Attention = choice("ssa", CHOICES["attention"])
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
