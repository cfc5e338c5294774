"""Max-ResNet as a program, as far as its shortcuts have no weights: those would read membranes."""

from __future__ import annotations

from spikformer.config import MaxResNetConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.program import Program
from spikformer.errors import FieldError


@register_lowering("max_resnet", MaxResNetConfig)
def lower_max_resnet(config: MaxResNetConfig, arrays: Arrays) -> Program:
    """Where width or resolution change, a shortcut's weights read membranes: such a network has no program."""
    if len(config.widths) > 1 or config.widths[0] != config.stem_width:
        raise FieldError(
            "widths",
            "The engine's products read spikes, but a shortcut of Max-ResNet that changes width or resolution has "
            "weights that read membranes: compile one stage as wide as the stem, a Max-Former or a SEW-ResNet, or run "
            "this one in PyTorch.",
        )
    layers, width = Layers(config, arrays), config.stem_width
    x = layers.conv_norm("stem", 0, width, config.in_channels)
    for block in range(config.depths[0]):
        name, output = f"stages.0.{block}", x
        for index in range(2):
            output = layers.pre_activation_conv(f"{name}.layers.{index}", output, width, width)
        x = layers.build.add(name, output, x)
    return layers.program(layers.fire("output_neuron", x), width)
