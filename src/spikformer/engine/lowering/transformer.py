"""What transformers are made of, as ops: patch splitting, attention in its variants, the MLP, and their residual sums.

Variants are rows of a table. One that is not in it passes floats on, and has no events to be driven by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spikformer.config import PoolAfter, TransformerConfig
from spikformer.engine.lowering.layers import Layers

Operand = Literal["query", "key", "value"]
Operands = Mapping[Operand, int]
"""The buffers that hold the spikes of Q, K and V."""


@dataclass(frozen=True)
class AttentionSizes:
    """One attention layer: its width, its heads, and the neuron that reads its product."""

    dim: int
    num_heads: int
    v_threshold: float
    scale: float | None = 0.125
    """s in Q Kᵀ V · s; None where it was learnt, and is among the arrays."""
    qk_pool: int = 1
    membrane: bool = False
    """Whether its input is a membrane: then a neuron is in front, and none follows the projection."""


Mix = Callable[[Layers, str, AttentionSizes, Operands], int]


def _attend(layers: Layers, name: str, sizes: AttentionSizes, operands: Operands) -> int:
    """Q Kᵀ V · s, with Q and K pooled along tokens if `qk_pool` says so."""
    query, key, build = operands["query"], operands["key"], layers.build
    if sizes.qk_pool > 1:
        query = build.pool_tokens(f"{name}.query.pool", query, sizes.qk_pool)
        key = build.pool_tokens(f"{name}.key.pool", key, sizes.qk_pool)
    scale = float(layers.arrays.take(f"{name}.mixing.scale")) if sizes.scale is None else sizes.scale
    return build.attend(f"{name}.mixing", query, key, operands["value"], sizes.num_heads, scale)


def _value(layers: Layers, name: str, sizes: AttentionSizes, operands: Operands) -> int:
    """V as it is: tokens do not see each other."""
    return operands["value"]


@dataclass(frozen=True)
class _Variant:
    """Which operands there are, and how they become the current of the neuron after them."""

    mix: Mix
    operands: tuple[Operand, ...] = ("query", "key", "value")  # side by side: they share their input's events


_VARIANTS: dict[str, _Variant] = {
    "ssa": _Variant(_attend),
    "random": _Variant(_attend),  # frozen in training, the same in inference
    "none": _Variant(_value, ("value",)),
}


def check_attention(variant: str) -> None:
    """Raise for a variant that has no ops."""
    if variant not in _VARIANTS:
        raise ValueError(
            f"The engine mixes spikes, but attention={variant!r} has floats in Q, K or V, or no ops here: compile a "
            f"model with {', '.join(_VARIANTS)}, or run this one in PyTorch."
        )


def spiking_stages(
    layers: Layers, widths: Sequence[int], pooled: Sequence[bool], pool_after: PoolAfter
) -> tuple[int, int]:
    """Stages of SN(BN(Conv(x))) from the input on, `pooled` ones with a pool; and the channels that they end with."""
    x, channels = 0, layers.config.in_channels
    for index, (outputs, pool) in enumerate(zip(widths, pooled, strict=True)):
        x = layers.spiking_conv(f"stem.stages.{index}", x, outputs, channels, pool_after if pool else None)
        channels = outputs
    return x, channels


def attention(layers: Layers, name: str, x: int, variant: str, sizes: AttentionSizes) -> int:
    """Spikes or, of a membrane, currents: Projection(SN(mix of Q, K and V))."""
    check_attention(variant)
    row, dim = _VARIANTS[variant], sizes.dim
    x = layers.fire(f"{name}.input_neuron", x) if sizes.membrane else x
    operands = {part: layers.spiking_linear(f"{name}.{part}", x, dim, dim) for part in row.operands}
    spikes = layers.fire(f"{name}.neuron", row.mix(layers, name, sizes, operands), sizes.v_threshold)
    project = layers.linear_norm if sizes.membrane else layers.spiking_linear
    return project(f"{name}.projection", spikes, dim, dim)


def add_mlp(
    layers: Layers, name: str, x: int, dim: int, hidden_dim: int, *, membrane: bool = False, inner: bool = False
) -> int:
    """The sum x + MLP(x); with the `inner` residual sum y = x + hidden(x) it is y + output(y)."""
    product = layers.pre_activation_linear if membrane else layers.spiking_linear
    hidden = product(f"{name}.hidden", x, hidden_dim, dim)
    if inner:
        x = hidden = layers.build.add(f"{name}.inner", x, hidden)
    return layers.build.add(name, x, product(f"{name}.output", hidden, dim, hidden_dim))


def encoder(
    layers: Layers, x: int, depth: int, variant: str, sizes: AttentionSizes, hidden_dim: int, *, inner: bool = False
) -> int:
    """Blocks of X' = X + Attention(X), X'' = X' + MLP(X')."""
    for index in range(depth):
        name = f"blocks.{index}"
        x = layers.build.add(f"{name}.attention", x, attention(layers, f"{name}.attention", x, variant, sizes))
        x = add_mlp(layers, f"{name}.mlp", x, sizes.dim, hidden_dim, membrane=sizes.membrane, inner=inner)
    return x


def membrane_encoder(layers: Layers, x: int, config: TransformerConfig, *, inner: bool = False) -> int:
    """Blocks on a membrane, as Spikingformer and the Spike-driven Transformer have them."""
    sizes = AttentionSizes(
        config.embed_dim, config.num_heads, config.attention_v_threshold, config.attention_scale, membrane=True
    )
    return encoder(layers, x, config.depth, config.attention, sizes, config.mlp_dim, inner=inner)
