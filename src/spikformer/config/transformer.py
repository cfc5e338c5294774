"""TransformerConfig: a spiking transformer of one width, as Spikformer and most successors: patch splitting, depth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Literal, Self

from spikformer.config.attention import SOFTMAX, AttentionConfig
from spikformer.validation import FieldError, count, shown

PoolAfter = Literal["neuron", "norm"]

_MOST_STAGES = 20  # of patch splitting: 2^20 is beyond any size


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

    @property
    def patch_size(self) -> int:
        return 2 ** sum(self.pool_stages)

    @property
    def stage_channels(self) -> tuple[int, ...]:
        """Width of each patch-splitting block: … D/4, D/2, D."""
        last = len(self.pool_stages) - 1
        return tuple(self.embed_dim // 2 ** (last - stage) for stage in range(last + 1))

    @property
    def num_parameters(self) -> int:
        """Of the network, from its sizes alone; parameters of neurons (`plif`) are not among them."""
        width, hidden = self.embed_dim, self.mlp_dim
        convolutions = [*pairwise((self.in_channels, *self.stage_channels)), (width, width)]
        stem = sum(9 * inputs * outputs + 2 * outputs for inputs, outputs in convolutions)  # 2: a norm's scale, shift
        attention = 4 * width * width + 9 * width
        return stem + self.depth * (attention + self.mlp_parameters(width, hidden)) + (width + 1) * self.num_classes

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
