"""Spiking Self Attention and its variants (paper Sec. 3.3, Tab. 1, 4 and 5).

A variant is three choices: what Q and K pass through, what V passes through, and how they mix.

    attention              Q, K          V        mixing
    ssa                    spikes        spikes   Q Kᵀ V · s
    random                 spikes        spikes   Q Kᵀ V · s, with the Q and K layers frozen as they were initialised
    identity               floats        spikes   Q Kᵀ V · s                   (A_I)
    relu, leaky_relu       rectified     spikes   Q Kᵀ V · s
    softmax                floats        spikes   Softmax(Q Kᵀ / √d) V         (VSA)
    softmax_float_value    floats        floats   Softmax(Q Kᵀ / √d) V         (VSA V_F)
    none                   –             spikes   V: no mixing between tokens
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers.mixing import linear_mixing, merge_heads, pool_tokens, softmax_mixing, split_heads
from spikformer.layers.products import batch_invariant
from spikformer.layers.spiking import SpikingLinear
from spikformer.layers.time import merge_time, over_time, split_time
from spikformer.neurons import Activation, SpikingNeuron, build_neuron


class AttentionState(NamedTuple):
    """Voltages [B, N, D]; None is a neuron at rest, or a float where a variant has no neuron."""

    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    mixed: Tensor | None = None
    projection: Tensor | None = None


class SpikingSelfAttention(nn.Module):
    """SSA: SN(BN(Linear(SN₀.₅(Q Kᵀ V · s)))) on tokens [T, B, N, D], each time step on its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.qk_pool, self.variant = config.num_heads, config.qk_pool, config.attention
        scale = torch.tensor(config.attention_scale)
        self.scale = nn.Parameter(scale) if config.learnable_scale else config.attention_scale

        def project(bias: bool, neuron: SpikingNeuron | Activation) -> SpikingLinear:
            return SpikingLinear(config.embed_dim, config.embed_dim, bias, neuron)

        if config.attention != "none":
            self.query = project(config.qkv_bias, _query_key_neuron(config))
            self.key = project(config.qkv_bias, _query_key_neuron(config))
        self.value = project(config.qkv_bias, _value_neuron(config))
        self.neuron = build_neuron(config, config.attention_v_threshold)
        self.projection = project(True, build_neuron(config))
        if config.attention == "random":
            self.query.requires_grad_(False)
            self.key.requires_grad_(False)

    def forward(self, x: Tensor, state: AttentionState | None = None) -> tuple[Tensor, AttentionState]:
        state = state or AttentionState()
        query_voltage = key_voltage = None
        value, value_voltage = self.value(x, state.value)
        mixed = value
        if self.variant != "none":
            query, query_voltage = self.query(x, state.query)
            key, key_voltage = self.key(x, state.key)
            mixed = self.mix(self._pool(query), self._pool(key), value)
        mixed, mixed_voltage = self.neuron(mixed, state.mixed)
        out, projection_voltage = self.projection(mixed, state.projection)
        return out, AttentionState(query_voltage, key_voltage, value_voltage, mixed_voltage, projection_voltage)

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The current of the neuron after attention, in float32 or wider: fp16 cannot count beyond 2048."""
        wide = torch.promote_types(value.dtype, torch.float32)
        mixing = softmax_mixing if self.variant in ("softmax", "softmax_float_value") else linear_mixing
        with torch.autocast(value.device.type, enabled=False):
            heads = [split_heads(merge_time(x.to(wide)), self.num_heads) for x in (query, key, value)]
            mixed = split_time(merge_heads(batch_invariant(mixing, *heads, training=self.training)), len(value))
            return mixed if mixing is softmax_mixing else mixed * self.scale

    def _pool(self, x: Tensor) -> Tensor:
        return x if self.qk_pool == 1 else over_time(lambda tokens: pool_tokens(tokens, self.qk_pool), x)

    def initial_state(self, batch_size: int, num_tokens: int) -> AttentionState:
        mixing = self.variant != "none"
        return AttentionState(
            query=self.query.at_rest(batch_size, num_tokens) if mixing else None,
            key=self.key.at_rest(batch_size, num_tokens) if mixing else None,
            value=self.value.at_rest(batch_size, num_tokens),
            mixed=self.neuron.at_rest(
                batch_size, num_tokens, self.value.linear.out_features, like=self.value.linear.weight
            ),
            projection=self.projection.at_rest(batch_size, num_tokens),
        )


def _query_key_neuron(config: ModelConfig) -> SpikingNeuron | Activation:
    if config.attention in ("ssa", "random"):
        return build_neuron(config)
    return Activation(config.attention if config.attention in ("relu", "leaky_relu") else "identity")


def _value_neuron(config: ModelConfig) -> SpikingNeuron | Activation:
    return Activation("identity") if config.attention == "softmax_float_value" else build_neuron(config)
