"""Spiking Self Attention and its variants (paper Sec. 3.3, Tab. 1, 5 and 6).

Without softmax the product of Q, K and V is associative: (Q Kᵀ) V costs 2 N² d, Q (Kᵀ V) costs 2 N d². On spikes both
are sums of integers, so the order is free to the last bit, in float32 as long as no count exceeds 2²⁴.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.config import add_choice
from spikformer.errors import FieldError
from spikformer.layers.linear import BatchSequenceLinear, LinearNorm, SpikingLinear, by_sample
from spikformer.layers.time import Stream, apply_neuron, merge_time, over_time, split_time
from spikformer.neurons import LIF, Activation, NeuronFactory

Operand = Literal["query", "key", "value"]
_half_lif = partial(LIF, v_threshold=0.5)


def query_key_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """(Q Kᵀ) V on [B, h, N, d]."""
    return (query @ key.transpose(-2, -1)) @ value


def key_value_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Q (Kᵀ V) on [B, h, N, d]."""
    return query @ (key.transpose(-2, -1) @ value)


def takes_keys_first(num_tokens: int, head_dim: int) -> bool:
    """Whether Kᵀ V first is cheaper: N d² products instead of N² d, for N tokens and d features in a head."""
    return num_tokens > head_dim


def linear_product(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Q Kᵀ V in the cheaper order."""
    if torch.jit.is_tracing():  # where sizes are unknown, and either order is right
        return query_key_first(query, key, value)
    product = key_value_first if takes_keys_first(*query.shape[-2:]) else query_key_first
    return product(query, key, value)


def softmax_product(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Vanilla self attention (VSA): Softmax(Q Kᵀ / √d) V."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ value


def spike_driven_product(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Σ over tokens of K ⊙ V on [B, h, N, d], to [B, h, 1, d]: no matrix product, and a mask over channels for Q."""
    return (key * value).sum(-2, keepdim=True)


def dilated_spike_driven_product(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The same of a dilated K ⊙ V."""
    return dilate(key * value).sum(-2, keepdim=True)


def token_product(query: Tensor, key: Tensor) -> Tensor:
    """Σ over a head's channels of Q on [B, h, N, d], to [B, h, N, 1]: a mask over tokens for K."""
    return query.sum(-1, keepdim=True)


@dataclass(frozen=True)
class AttentionVariant:
    """What Q, K and V pass through, how they mix, and what becomes of the result.

    "spikes" is the network's neuron, another word an activation, None a variant without that operand.
    """

    product: Callable[..., Tensor] | None
    """Of those operands that there are, as heads [B, h, N, d]; None passes V on, without mixing tokens."""
    query: str | None = "spikes"
    key: str | None = "spikes"
    value: str | None = "spikes"
    scaled: bool = True
    """Whether the product is multiplied by the attention scale s."""
    gate: Operand | None = None
    """An operand that the spikes of the product multiply, as a mask over tokens or channels."""
    frozen: bool = False
    """Whether Q and K keep their initial weights."""
    dilated: bool = False
    """Whether 3×3 max filters widen K and V as maps, and the gated operand along tokens and channels of a head."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        there: dict[Operand, str | None] = {"query": self.query, "key": self.key, "value": self.value}
        return tuple(operand for operand, passes in there.items() if passes is not None)


_ORDER: tuple[Operand, ...] = ("value", "query", "key")  # in which they run, and streams keep their voltages
_ATTENTIONS: dict[str, AttentionVariant] = {
    "ssa": AttentionVariant(linear_product),
    "random": AttentionVariant(linear_product, frozen=True),
    "identity": AttentionVariant(linear_product, "identity", "identity"),  # A_I
    "relu": AttentionVariant(linear_product, "relu", "relu"),
    "leaky_relu": AttentionVariant(linear_product, "leaky_relu", "leaky_relu"),
    "softmax": AttentionVariant(softmax_product, "identity", "identity", scaled=False),  # VSA
    "softmax_float_value": AttentionVariant(softmax_product, *3 * ("identity",), scaled=False),  # VSA V_F
    "none": AttentionVariant(None, None, None),
    "spike_driven": AttentionVariant(spike_driven_product, scaled=False, gate="query"),  # SDSA
    "token": AttentionVariant(token_product, value=None, scaled=False, gate="key"),  # QKTA
    "spike_driven_dilated": AttentionVariant(dilated_spike_driven_product, scaled=False, gate="query", dilated=True),
}


def register_attention(name: str, variant: AttentionVariant) -> None:
    """Let configs and layers name an attention variant from outside the package."""
    add_choice("attention", name)
    _ATTENTIONS[name] = variant


class SpikingSelfAttention(nn.Module):
    """SSA: SN(BN(Linear(SN₀.₅(Q Kᵀ V · s)))) on tokens [T, B, N, D], each time step on its own.

    With `membrane`, tokens are membranes: a neuron in front makes spikes of them, and none follows the projection.
    With `batch_leak`, the projection's neurons read all samples of a batch as one sequence (`BatchSequenceLinear`).
    `grid` is the rows and columns of tokens, which dilated variants need.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        neuron: NeuronFactory = LIF,
        product_neuron: NeuronFactory = _half_lif,
        *,
        variant: str = "ssa",
        scale: float = 0.125,
        learnable_scale: bool = False,
        qk_pool: int = 1,
        qkv_bias: bool = True,
        membrane: bool = False,
        batch_leak: bool = False,
        grid: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        row = _ATTENTIONS[variant]
        if row.dilated and grid is None:
            raise FieldError("grid", f"attention {variant!r} needs the rows and columns of its tokens, got grid=None.")
        self.operands, self.num_heads = row.operands, num_heads
        self.dilated, self.grid = row.dilated, grid
        if membrane:
            self.input_neuron = neuron()

        def project(passes: str) -> SpikingLinear:
            return SpikingLinear(dim, dim, qkv_bias, neuron if passes == "spikes" else partial(Activation, passes))

        if row.query is not None:
            self.query = project(row.query)
        if row.key is not None:
            self.key = project(row.key)
        if row.product is not None:
            self.mixing = TokenMixing(num_heads, row, scale=scale, learnable_scale=learnable_scale, qk_pool=qk_pool)
        if row.value is not None:
            self.value = project(row.value)
        self.neuron = product_neuron()
        if row.gate is not None:
            self.gate = Gating(num_heads, row.gate, row.dilated)
        if membrane:
            self.projection: LinearNorm = LinearNorm(dim, dim)
        else:
            self.projection = (BatchSequenceLinear if batch_leak else SpikingLinear)(dim, dim, neuron=neuron)
        if row.frozen:
            self.query.requires_grad_(False)
            self.key.requires_grad_(False)

    @property
    def mixes(self) -> bool:
        """Whether tokens see each other."""
        return hasattr(self, "mixing")

    @property
    def reads_membranes(self) -> bool:
        return hasattr(self, "input_neuron")

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        x = apply_neuron(self.input_neuron, x, stream) if self.reads_membranes else x
        operands = {name: getattr(self, name)(x, stream) for name in _ORDER if name in self.operands}
        if self.grid is not None and self.dilated:
            for name in ("key", "value"):
                operands[name] = over_time(partial(dilate_map, grid=self.grid), operands[name])
        mixed = self.mixing(*(operands[name] for name in self.operands)) if self.mixes else operands["value"]
        spikes = apply_neuron(self.neuron, mixed, stream)
        if hasattr(self, "gate"):
            spikes = self.gate(operands[self.gate.operand], spikes)
        first = next(iter(operands.values()))
        return self.projection(spikes.to(first.dtype), stream)  # after a product in full precision


class Gating(nn.Module):
    """An operand [T, B, N, D] times a mask that has one token, or one channel in each head, or all of them.

    A module of its own, so that hooks see the mask and what it lets pass.
    """

    def __init__(self, num_heads: int, operand: Operand, dilated: bool = False) -> None:
        super().__init__()
        self.num_heads, self.operand, self.dilated = num_heads, operand, dilated

    def forward(self, operand: Tensor, mask: Tensor) -> Tensor:
        masked = split_heads(operand, self.num_heads) * split_heads(mask, self.num_heads)
        return merge_heads(over_time(dilate, masked) if self.dilated else masked)


class TokenMixing(nn.Module):
    """The product of a variant on [T, B, N, D], such as Q Kᵀ V · s: the current of the neuron after attention.

    A module of its own, so that hooks see what enters and leaves it. Computed and returned in float32 or wider:
    fp16 cannot count beyond 2048.
    """

    def __init__(
        self,
        num_heads: int,
        variant: AttentionVariant,
        *,
        scale: float = 0.125,
        learnable_scale: bool = False,
        qk_pool: int = 1,
    ) -> None:
        super().__init__()
        self.num_heads, self.variant, self.qk_pool = num_heads, variant, qk_pool
        self.scale = nn.Parameter(torch.tensor(scale)) if learnable_scale else scale

    @property
    def softmax(self) -> bool:
        return self.variant.product is softmax_product

    def forward(self, *operands: Tensor) -> Tensor:
        product = self.variant.product
        assert product is not None  # or there is no such layer
        dtype, time_steps = operands[0].dtype, operands[0].shape[0]
        wide = torch.promote_types(dtype, torch.float32)
        with without_autocast(operands[0].device):
            heads = [split_heads(merge_time(x.to(wide)), self.num_heads) for x in self.pooled(*operands)]
            mixed = split_time(merge_heads(by_sample(product, *heads)), time_steps)
            return mixed * self.scale if self.variant.scaled else mixed

    def pooled(self, *operands: Tensor) -> list[Tensor]:
        """The operands, Q and K after their max-pool along tokens, if there is one."""
        named = zip(self.variant.operands, operands, strict=True)
        return [x if name == "value" or self.qk_pool == 1 else self._pool(x) for name, x in named]

    def _pool(self, x: Tensor) -> Tensor:
        return over_time(lambda tokens: pool_tokens(tokens, self.qk_pool), x)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """[B, N, D] to [B, h, N, d]."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def merge_heads(x: Tensor) -> Tensor:
    """[B, h, N, d] to [B, N, D]."""
    return x.transpose(-2, -3).flatten(-2)


def pool_tokens(x: Tensor, kernel: int) -> Tensor:
    """Max-pool along the tokens of [B, N, D], which keeps their number."""
    return F.max_pool1d(x.transpose(-1, -2), kernel, stride=1, padding=kernel // 2).transpose(-1, -2)


def dilate(x: Tensor) -> Tensor:
    """Max filter 3×3 over the last two axes of [B, C, H, W]: a spike spreads to its neighbours."""
    return F.max_pool2d(x, kernel_size=3, stride=1, padding=1)


def dilate_map(x: Tensor, grid: tuple[int, int]) -> Tensor:
    """The same on tokens [B, N, D], over the rows and columns that they came from."""
    return dilate(x.transpose(-1, -2).unflatten(-1, grid)).flatten(-2).transpose(-1, -2)


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Full precision inside; shapes-only devices have no autocast to switch off."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
