"""Spikformer (Zhou et al., 2023): spiking self attention on tokens of spikes.

Shapes: T steps, B samples, C channels, N tokens, D features, K classes.
"""

from __future__ import annotations

from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers import EncoderBlock, Linear, SpikingMLP, SpikingPatchSplitting, SpikingSelfAttention, Stream
from spikformer.models.base import SpikingNetwork, truncated_normal
from spikformer.models.registry import register_architecture
from spikformer.neurons import neuron_factory


class Spikformer(SpikingNetwork):
    """Y = Head(mean over tokens and steps of Encoder(SPS(I))) (paper Sec. 3.1)."""

    config: ModelConfig

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        neuron = neuron_factory(config)
        self.num_features = config.embed_dim
        self.stem = SpikingPatchSplitting(
            config.in_channels, config.stage_channels, config.pool_stages, neuron, config.pool_after
        )
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.depth))
        self.head = self.build_head()
        self._initialise()

    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        x = self.stem(frames, stream, repeats)
        for block in self.blocks:
            x = block(x, stream)
        return x

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, Linear) and (self.config.linear_init == "trunc_normal" or module is self.head):
                truncated_normal(module)


def _block(config: ModelConfig) -> EncoderBlock:
    neuron = neuron_factory(config)
    attention = SpikingSelfAttention(
        config.embed_dim,
        config.num_heads,
        neuron,
        neuron_factory(config, v_threshold=config.attention_v_threshold),
        variant=config.attention,
        scale=config.attention_scale,
        learnable_scale=config.learnable_scale,
        qk_pool=config.qk_pool,
        qkv_bias=config.qkv_bias,
        grid=config.grid,
    )
    return EncoderBlock(attention, SpikingMLP(config.embed_dim, config.mlp_dim, neuron))


register_architecture("spikformer", Spikformer, ModelConfig)
