"""Spikingformer as a program: a stream of membranes, with neurons that read it in front of every product."""

from __future__ import annotations

from spikformer.config import SpikingformerConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.lowering.transformer import membrane_encoder, spiking_stages
from spikformer.engine.program import Program


@register_lowering("spikingformer", SpikingformerConfig)
def lower_spikingformer(config: SpikingformerConfig, arrays: Arrays) -> Program:
    """The position embedding takes the place of the stages' spikes, and the head reads membranes."""
    layers, dim = Layers(config, arrays), config.embed_dim
    sizes = config.in_channels, config.stage_channels, config.pool_stages
    x = spiking_stages(layers, "stem.stages", 0, *sizes, config.pool_after)
    x = layers.conv_norm("stem.position", x, dim, dim)
    return layers.program(membrane_encoder(layers, x, config), dim)
