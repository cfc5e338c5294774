"""How tokens mix: the product of Q, K and V.

Without softmax the product is associative: (Q Kᵀ) V costs 2 N² d, Q (Kᵀ V) costs 2 N d². On spikes both are sums
of whole numbers, so the order is free to the last bit, in float32 as long as no count exceeds 2²⁴.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers.products import batch_invariant
from spikformer.layers.time import merge_time, over_time, split_time


class TokenMixing(nn.Module):
    """Q Kᵀ V · s, or Softmax(Q Kᵀ / √d) V, on [T, B, N, D]: the current of the neuron after attention.

    A module of its own, so that hooks see what enters and leaves it. Computed and returned in float32 or wider:
    fp16 cannot count beyond 2048.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.qk_pool = config.num_heads, config.qk_pool
        self.softmax = config.attention in ("softmax", "softmax_float_value")
        scale = config.attention_scale
        self.scale = nn.Parameter(torch.tensor(scale)) if config.learnable_scale else scale

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        product = softmax_product if self.softmax else linear_product
        wide = torch.promote_types(value.dtype, torch.float32)
        with without_autocast(value.device):
            tokens = (self.pool(query), self.pool(key), value)
            heads = [split_heads(merge_time(x.to(wide)), self.num_heads) for x in tokens]
            mixed = split_time(merge_heads(batch_invariant(product, *heads, training=self.training)), value.shape[0])
            return mixed if self.softmax else mixed * self.scale

    def pool(self, x: Tensor) -> Tensor:
        """Q or K after its max-pool along tokens, if the config wants one."""
        return x if self.qk_pool == 1 else over_time(lambda tokens: pool_tokens(tokens, self.qk_pool), x)


def query_key_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """(Q Kᵀ) V on [B, h, N, d]."""
    return (query @ key.transpose(-2, -1)) @ value


def key_value_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Q (Kᵀ V) on [B, h, N, d]."""
    return query @ (key.transpose(-2, -1) @ value)


def linear_product(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Q Kᵀ V in the cheaper order: Kᵀ V first where there are more tokens N than features d in a head."""
    if torch.jit.is_tracing():  # where sizes are unknown, and either order is right
        return query_key_first(query, key, value)
    num_tokens, head_dim = query.shape[-2:]
    product = key_value_first if num_tokens > head_dim else query_key_first
    return product(query, key, value)


def softmax_product(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Vanilla self attention (VSA): Softmax(Q Kᵀ / √d) V."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ value


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """[B, N, D] to [B, h, N, d]."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def merge_heads(x: Tensor) -> Tensor:
    """[B, h, N, d] to [B, N, D]."""
    return x.transpose(-2, -3).flatten(-2)


def pool_tokens(x: Tensor, kernel: int) -> Tensor:
    """Max-pool along the tokens of [B, N, D], which keeps their number."""
    return F.max_pool1d(x.transpose(-1, -2), kernel, stride=1, padding=kernel // 2).transpose(-1, -2)


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Full precision inside; shapes-only devices have no autocast to switch off."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
