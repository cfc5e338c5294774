"""Spikformer as a program: patch splitting, position embedding, encoder blocks, head (paper Sec. 3)."""

from __future__ import annotations

from spikformer.config import ModelConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.lowering.transformer import AttentionSizes, add_block, spiking_stages
from spikformer.engine.program import Program


@register_lowering("spikformer", ModelConfig)
def lower_spikformer(config: ModelConfig, arrays: Arrays) -> Program:
    """The stream is a sum of spikes: counts in bytes."""
    layers, dim = Layers(config, arrays), config.embed_dim
    sizes = config.in_channels, config.stage_channels, config.pool_stages
    x = spiking_stages(layers, "stem.stages", 0, *sizes, config.pool_after)
    x = layers.build.add("stem", x, layers.spiking_conv("stem.position", x, dim, dim))
    scale = None if config.learnable_scale else config.attention_scale
    threshold = config.attention_v_threshold
    attention = AttentionSizes(config.attention, dim, config.num_heads, threshold, scale, config.qk_pool)
    for index in range(config.depth):
        x = add_block(layers, f"blocks.{index}", x, attention, config.mlp_dim)
    return layers.program(x, dim)
