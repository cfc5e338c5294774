"""Spiking Self Attention and its variants (paper Sec. 3.3, Tab. 1, 5 and 6).

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

from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers.mixing import TokenMixing
from spikformer.layers.spiking import SpikingLinear
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

        def project(bias: bool, neuron: SpikingNeuron | Activation) -> SpikingLinear:
            return SpikingLinear(config.embed_dim, config.embed_dim, bias, neuron)

        self.mixes = config.attention != "none"
        if self.mixes:
            self.query = project(config.qkv_bias, _query_key_neuron(config))
            self.key = project(config.qkv_bias, _query_key_neuron(config))
            self.mixing = TokenMixing(config)
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
        if self.mixes:
            query, query_voltage = self.query(x, state.query)
            key, key_voltage = self.key(x, state.key)
            mixed = self.mixing(query, key, value)
        mixed, mixed_voltage = self.neuron(mixed, state.mixed)
        out, projection_voltage = self.projection(mixed.to(value.dtype), state.projection)
        return out, AttentionState(query_voltage, key_voltage, value_voltage, mixed_voltage, projection_voltage)

    def initial_state(self, batch_size: int, num_tokens: int, like: Tensor) -> AttentionState:
        shape = (batch_size, num_tokens, like)
        return AttentionState(
            query=self.query.at_rest(*shape) if self.mixes else None,
            key=self.key.at_rest(*shape) if self.mixes else None,
            value=self.value.at_rest(*shape),
            mixed=self.neuron.at_rest(batch_size, num_tokens, self.value.linear.out_features, like=like),
            projection=self.projection.at_rest(*shape),
        )


_FLOAT_QUERY_KEY = {
    "identity": "identity",
    "relu": "relu",
    "leaky_relu": "leaky_relu",
    "softmax": "identity",
    "softmax_float_value": "identity",
}


def _query_key_neuron(config: ModelConfig) -> SpikingNeuron | Activation:
    if config.attention in ("ssa", "random"):
        return build_neuron(config)
    return Activation(_FLOAT_QUERY_KEY[config.attention])


def _value_neuron(config: ModelConfig) -> SpikingNeuron | Activation:
    return Activation("identity") if config.attention == "softmax_float_value" else build_neuron(config)
