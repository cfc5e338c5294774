"""The Spike-driven Transformer as a program: membranes, masks instead of products, and a neuron before the head."""

from __future__ import annotations

from spikformer.config import SpikeDrivenConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.lowering.transformer import membrane_encoder, spiking_stages
from spikformer.engine.program import Program


@register_lowering("spike_driven_transformer", SpikeDrivenConfig)
def lower_spike_driven_transformer(config: SpikeDrivenConfig, arrays: Arrays) -> Program:
    """The last stage of the patch splitting has no neuron; its pool, as the position embedding, is of membranes."""
    layers, dim = Layers(config, arrays), config.embed_dim
    *widths, _ = config.stage_channels
    *pooled, last_pooled = config.pool_stages
    x = spiking_stages(layers, "stem.stages", 0, config.in_channels, widths, pooled, "neuron")
    x = layers.conv_norm(f"stem.stages.{len(widths)}", x, dim, (config.in_channels, *widths)[-1], last_pooled)
    x = layers.build.add("stem", x, layers.pre_activation_conv("stem.position", x, dim, dim))
    x = membrane_encoder(layers, x, config, inner_residual=config.mlp_dim == dim)
    return layers.program(layers.head_spikes(x), dim)
