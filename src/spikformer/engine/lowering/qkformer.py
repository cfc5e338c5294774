"""QKFormer and MS-QKFormer as programs: token attention in early stages, on sums of spikes or on membranes."""

from __future__ import annotations

from functools import partial

from spikformer.config import MSQKFormerConfig, QKFormerConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.hierarchical import membrane_embedding, spiking_embedding, stage_attention, stages
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.program import Program


@register_lowering("qkformer", QKFormerConfig)
def lower_qkformer(config: QKFormerConfig, arrays: Arrays) -> Program:
    """Each stage's stream is a sum of spikes: counts in bytes, which convolutions between the stages read, too."""
    layers = Layers(config, arrays)
    embed, mix = partial(spiking_embedding, layers), stage_attention(layers, config, membrane=False)
    x = stages(layers, config, embed, embed, mix, membrane=False)
    return layers.program(x, config.embed_dim)


@register_lowering("ms_qkformer", MSQKFormerConfig)
def lower_ms_qkformer(config: MSQKFormerConfig, arrays: Arrays) -> Program:
    """Streams are membranes; every product but the first reads spikes."""
    layers = Layers(config, arrays)
    embed, mix = partial(membrane_embedding, layers), stage_attention(layers, config, membrane=True)
    x = stages(layers, config, embed, embed, mix, membrane=True)
    return layers.program(layers.head_spikes(x), config.embed_dim)
