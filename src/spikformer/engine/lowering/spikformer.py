"""Spikformer as a program: patch splitting, position embedding, encoder blocks, head (paper Sec. 3)."""

from __future__ import annotations

from spikformer.config import ModelConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.lowering.transformer import AttentionSizes, encoder, spiking_stages
from spikformer.engine.program import Program


@register_lowering("spikformer", ModelConfig)
def lower_spikformer(config: ModelConfig, arrays: Arrays) -> Program:
    """The stream is a sum of spikes: counts in bytes."""
    layers, dim = Layers(config, arrays), config.embed_dim
    x, _ = spiking_stages(layers, config.stage_channels, config.pool_stages, config.pool_after)
    x = layers.build.add("stem", x, layers.spiking_conv("stem.position", x, dim, dim))
    scale = None if config.learnable_scale else config.attention_scale
    sizes = AttentionSizes(dim, config.num_heads, config.attention_v_threshold, scale, config.qk_pool)
    return layers.program(encoder(layers, x, config.depth, config.attention, sizes, config.mlp_dim), dim)
