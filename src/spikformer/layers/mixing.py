"""How tokens mix: the products of Q, K and V, as pure functions of [B, h, N, d]; each time step is a sample.

Without softmax the product is associative: (Q Kᵀ) V costs 2 N² d, Q (Kᵀ V) costs 2 N d². On spikes both are sums
of whole numbers, so the order is free to the last bit, in float32 as long as no count exceeds 2²⁴.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def query_key_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return (query @ key.transpose(-2, -1)) @ value


def key_value_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return query @ (key.transpose(-2, -1) @ value)


def linear_mixing(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Q Kᵀ V in the cheaper order: Kᵀ V first where there are more tokens N than features d in a head."""
    num_tokens, head_dim = query.shape[-2:]
    product = key_value_first if num_tokens > head_dim else query_key_first
    return product(query, key, value)


def softmax_mixing(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Vanilla self attention (VSA): Softmax(Q Kᵀ / √d) V."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
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
