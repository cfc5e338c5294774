"""Spikingformer (Zhou et al., 2023): Spikformer with the neuron before the weight instead of after it.

The residual stream is a membrane, so that every weight but those of the first convolution and the head sees spikes.
"""

from __future__ import annotations

from torch import Tensor, nn

from spikformer.config import SpikingformerConfig, TransformerConfig
from spikformer.layers import (
    ConvNorm,
    EncoderBlock,
    PatchSplitting,
    SpikingMLP,
    SpikingSelfAttention,
    Stream,
    spiking_stages,
)
from spikformer.models.base import SpikingNetwork
from spikformer.models.registry import register_architecture
from spikformer.neurons import neuron_factory


class Spikingformer(SpikingNetwork):
    """Y = Head(mean over tokens and steps of U), with membranes U from U ← U + BN(Linear(SSA(SN(U)))) and its MLP."""

    config: SpikingformerConfig

    def __init__(self, config: SpikingformerConfig) -> None:
        super().__init__(config)
        neuron, dim = neuron_factory(config), config.embed_dim
        self.num_features = dim
        stages = spiking_stages(
            config.in_channels, config.stage_channels, config.pool_stages, neuron, config.pool_after
        )
        self.stem = PatchSplitting(stages, ConvNorm(dim, dim), shortcut=False)
        self.blocks = nn.ModuleList(membrane_block(config) for _ in range(config.depth))
        self.head = self.initialise_head(self.build_head())

    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        x = self.stem(frames, stream, repeats)
        for block in self.blocks:
            x = block(x, stream)
        return x


def membrane_block(config: TransformerConfig, inner_residual: bool = False) -> EncoderBlock:
    """U' = U + Attention(SN(U)), U'' = U' + MLP(U'): spikes inside, membranes in between."""
    neuron = neuron_factory(config)
    attention = SpikingSelfAttention(
        config.embed_dim,
        config.num_heads,
        neuron,
        neuron_factory(config, v_threshold=config.attention_v_threshold),
        variant=config.attention,
        scale=config.attention_scale,
        qkv_bias=False,
        membrane=True,
        grid=config.grid,
    )
    mlp = SpikingMLP(config.embed_dim, config.mlp_dim, neuron, membrane=True, inner_residual=inner_residual)
    return EncoderBlock(attention, mlp)


register_architecture("spikingformer", Spikingformer, SpikingformerConfig)
