"""Max-Former as a program: depthwise convolutions of spikes in early stages, attention in the last, membranes."""

from __future__ import annotations

from functools import partial

from spikformer.config import MaxFormerConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.hierarchical import membrane_embedding, stage_attention, stages
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.program import Program


@register_lowering("maxformer", MaxFormerConfig)
def lower_maxformer(config: MaxFormerConfig, arrays: Arrays) -> Program:
    """On ImageNet the stem's convolutions have strides; between stages, pools of membranes halve both paths."""
    layers = Layers(config, arrays)
    stem = partial(membrane_embedding, layers, strided=config.stem == "quarter")
    down = partial(membrane_embedding, layers, pooled_shortcut=True)
    attend = stage_attention(layers, config, membrane=True)

    def mix(name: str, x: int, stage: int) -> int:
        if stage == config.last_stage:
            return attend(name, x, stage)
        width, kernel = config.widths[stage], config.mixer_kernels[stage]
        if kernel == 0:
            return x
        return layers.build.add(name, x, layers.pre_activation_depthwise(f"{name}.conv", x, width, kernel))

    x = stages(layers, config, stem, down, mix, membrane=True)
    return layers.program(layers.head_spikes(x), config.embed_dim)
