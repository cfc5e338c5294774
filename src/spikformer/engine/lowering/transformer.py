"""What transformers are made of, as ops: patch splitting, attention in its variants, the MLP, and their residual sums.

Attention variants are rows of a table. One that is not in it passes floats on, and has no events to be driven by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from spikformer.config import PoolAfter, TransformerConfig
from spikformer.engine.lowering.layers import Layers
from spikformer.errors import FieldError

Operand = Literal["query", "key", "value"]
Operands = Mapping[Operand, int]
"""The buffers that hold the spikes of Q, K and V."""


@dataclass(frozen=True)
class AttentionSizes:
    """One attention layer: its width and heads, and the threshold of the neuron that reads its product."""

    variant: str
    dim: int
    num_heads: int
    v_threshold: float
    scale: float | None
    """s in Q Kᵀ V · s; None where it was learnt, and is among the arrays."""
    qk_pool: int = 1
    membrane: bool = False
    """Whether its input is a membrane: then a neuron is in front, and none follows the projection."""


def _attend(layers: Layers, name: str, attention: AttentionSizes, operands: Operands) -> int:
    """Q Kᵀ V · s, with Q and K pooled along tokens if `qk_pool` says so."""
    query, key, build = operands["query"], operands["key"], layers.build
    if attention.qk_pool > 1:
        query = build.pool_tokens(f"{name}.query.pool", query, attention.qk_pool)
        key = build.pool_tokens(f"{name}.key.pool", key, attention.qk_pool)
    scale = attention.scale
    if scale is None:
        scale = float(layers.arrays.take(f"{name}.mixing.scale"))
    return build.attend(f"{name}.mixing", query, key, operands["value"], attention.num_heads, scale)


def _value(layers: Layers, name: str, attention: AttentionSizes, operands: Operands) -> int:
    """V as it is: tokens do not see each other."""
    return operands["value"]


def _sum_over_tokens(
    layers: Layers, name: str, attention: AttentionSizes, operands: Operands, *, dilated: bool = False
) -> int:
    """Σ over tokens of K ∧ V: a current for each channel."""
    both = layers.build.conjunction(f"{name}.mixing.product", operands["key"], operands["value"])
    if dilated:
        both = layers.build.dilate_heads(f"{name}.mixing.dilation", both, attention.num_heads)
    return layers.build.sum_tokens(f"{name}.mixing", both)


def _sum_over_channels(layers: Layers, name: str, attention: AttentionSizes, operands: Operands) -> int:
    """Σ over the channels of each head of Q: a current for each token and head."""
    return layers.build.sum_heads(f"{name}.mixing", operands["query"], attention.num_heads)


@dataclass(frozen=True)
class _Variant:
    """Which operands there are, how they become the current of the neuron after them, and what its spikes mask."""

    mix: Callable[[Layers, str, AttentionSizes, Operands], int]
    operands: tuple[Operand, ...] = ("query", "key", "value")  # side by side: they share their input's events
    gate: Operand | None = None
    masks_heads: bool = False
    """Whether the mask has a spike for each token and head, instead of one for each channel."""
    dilated: bool = False


_VARIANTS: dict[str, _Variant] = {
    "ssa": _Variant(_attend),
    "random": _Variant(_attend),  # Q and K are frozen in training, which inference does not see
    "none": _Variant(_value, ("value",)),
    "spike_driven": _Variant(_sum_over_tokens, gate="query"),
    "spike_driven_dilated": _Variant(partial(_sum_over_tokens, dilated=True), gate="query", dilated=True),
    "token": _Variant(_sum_over_channels, ("query", "key"), gate="key", masks_heads=True),
}


def add_attention(layers: Layers, name: str, x: int, attention: AttentionSizes) -> int:
    """The sum x + Projection(SN(mix of Q, K and V)), of spikes or, if x is one, of membranes."""
    if attention.variant not in _VARIANTS:
        raise FieldError(
            "attention",
            f"The engine mixes spikes, but attention={attention.variant!r} has floats in Q, K or V, or no ops here: "
            f"compile a model with {', '.join(_VARIANTS)}, or run this one in PyTorch.",
        )
    row, dim, build = _VARIANTS[attention.variant], attention.dim, layers.build
    read = layers.fire(f"{name}.input_neuron", x) if attention.membrane else x
    operands = {part: layers.spiking_linear(f"{name}.{part}", read, dim, dim) for part in row.operands}
    if row.dilated:
        for part in ("key", "value"):
            operands[part] = build.dilate(f"{name}.{part}.dilation", operands[part])
    spikes = layers.fire(f"{name}.neuron", row.mix(layers, name, attention, operands), attention.v_threshold)
    if row.gate is not None:
        num_heads = attention.num_heads if row.masks_heads else 1
        spikes = build.conjunction(f"{name}.gate", operands[row.gate], spikes, num_heads)
    if row.dilated:
        spikes = build.dilate_heads(f"{name}.gate.dilation", spikes, attention.num_heads)
    project = layers.linear_norm if attention.membrane else layers.spiking_linear
    return build.add(name, x, project(f"{name}.projection", spikes, dim, dim))


def add_mlp(
    layers: Layers, name: str, x: int, dim: int, hidden_dim: int, *, membrane: bool, inner_residual: bool = False
) -> int:
    """The sum x + MLP(x); with an inner residual sum y = x + hidden(x) it is y + output(y)."""
    product = layers.pre_activation_linear if membrane else layers.spiking_linear
    hidden = product(f"{name}.hidden", x, hidden_dim, dim)
    if inner_residual:
        x = hidden = layers.build.add(f"{name}.inner", x, hidden)
    return layers.build.add(name, x, product(f"{name}.output", hidden, dim, hidden_dim))


def add_block(
    layers: Layers, name: str, x: int, attention: AttentionSizes, hidden_dim: int, *, inner_residual: bool = False
) -> int:
    """X' = X + Attention(X), X'' = X' + MLP(X')."""
    x = add_attention(layers, f"{name}.attention", x, attention)
    dim, membrane = attention.dim, attention.membrane
    return add_mlp(layers, f"{name}.mlp", x, dim, hidden_dim, membrane=membrane, inner_residual=inner_residual)


def membrane_encoder(layers: Layers, x: int, config: TransformerConfig, *, inner_residual: bool = False) -> int:
    """The blocks of Spikingformer and of the Spike-driven Transformer, on a membrane."""
    scale, threshold = config.attention_scale, config.attention_v_threshold
    attention = AttentionSizes(config.attention, config.embed_dim, config.num_heads, threshold, scale, membrane=True)
    for index in range(config.depth):
        x = add_block(layers, f"blocks.{index}", x, attention, config.mlp_dim, inner_residual=inner_residual)
    return x


def spiking_stages(
    layers: Layers,
    name: str,
    x: int,
    in_channels: int,
    widths: Sequence[int],
    pooled: Sequence[bool],
    pool_after: PoolAfter,
) -> int:
    """Stages of SN(BN(Conv(x))) of these widths; `pooled` says which of them have a pool."""
    for index, (outputs, pool) in enumerate(zip(widths, pooled, strict=True)):
        x = layers.spiking_conv(f"{name}.{index}", x, outputs, in_channels, pool_after if pool else None)
        in_channels = outputs
    return x
