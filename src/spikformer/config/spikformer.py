"""ModelConfig: everything that decides a Spikformer's shape and mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from spikformer.config.attention import DILATED, SOFTMAX
from spikformer.config.network import LinearInit, NetworkConfig
from spikformer.config.transformer import PoolAfter, TransformerConfig
from spikformer.validation import FieldError, choice, count, flag

_WITHOUT_MAPS = ("none", "spike_driven", DILATED, "token")
_UNSCALED = (*SOFTMAX, *_WITHOUT_MAPS)


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
