"""SEW-ResNet and SEW's networks for event cameras as programs: spikes joined with those of a shortcut."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from spikformer.config import Join, PoolAfter, SEWEventConfig, SEWResNetConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.program import Builder, Program
from spikformer.errors import FieldError

_JOINS: dict[Join, Callable[[Builder, str, int, int], int]] = {
    "add": lambda build, name, output, shortcut: build.add(name, shortcut, output),
    "and": lambda build, name, output, shortcut: build.conjunction(name, output, shortcut),
    "iand": lambda build, name, output, shortcut: build.conjunction(name, shortcut, output, inverted=True),
}
"""A block's output and its shortcut: a sum counts spikes, the others stay spikes."""


@register_lowering("sew_resnet", SEWResNetConfig)
def lower_sew_resnet(config: SEWResNetConfig, arrays: Arrays) -> Program:
    """Joined by `add`, convolutions read counts; otherwise spikes."""
    layers, width = Layers(config, arrays), config.widths[0]
    pool_after: PoolAfter | None = "neuron" if config.stem_pool else None
    kernel, stride = config.stem_kernel_size, config.stem_stride
    x = layers.spiking_conv("stem", 0, width, config.in_channels, pool_after, kernel=kernel, stride=stride)
    channels = width
    for stage, (width, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
        for block in range(depth):
            name, stride = f"stages.{stage}.{block}", 2 if stage and not block else 1
            x = _sew_block(layers, config, name, x, channels, width, stride)
            channels = width * config.expansion
    return layers.program(x, channels)


def _sew_block(
    layers: Layers, config: SEWResNetConfig, name: str, x: int, channels: int, width: int, stride: int
) -> int:
    kernels, outputs = config.kernel_sizes, width * config.expansion
    output, reads = x, channels
    for index, kernel in enumerate(kernels):
        writes = outputs if index == len(kernels) - 1 else width
        step = stride if index == kernels.index(3) else 1
        output = layers.spiking_conv(f"{name}.layers.{index}", output, writes, reads, kernel=kernel, stride=step)
        reads = writes
    shortcut = x
    if stride > 1 or channels != outputs:
        shortcut = layers.spiking_conv(f"{name}.shortcut", x, outputs, channels, kernel=1, stride=stride)
    return _JOINS[config.join](layers.build, name, output, shortcut)


@register_lowering("sew_event_net", SEWEventConfig)
def lower_sew_event_net(config: SEWEventConfig, arrays: Arrays) -> Program:
    """2×2 pools halve maps of counts, or of spikes, until one position is left."""
    positions = prod(config.grid or (1, 1))
    if positions > 1:
        raise FieldError(
            "image_size",
            f"The engine's head reads the mean over positions, but this one reads each of {positions}: compile a model "
            f"whose image_size is its patch size, {config.patch_size}, or run this one in PyTorch.",
        )
    layers, x, channels, index = Layers(config, arrays), 0, config.in_channels, 0
    for width in config.widths:
        if channels != width:
            x = layers.spiking_conv(f"layers.{index}", x, width, channels, kernel=1)
            index += 1
        output, name = x, f"layers.{index}"
        for conv in range(2):
            output = layers.spiking_conv(f"{name}.layers.{conv}", output, width, width)
        x = layers.build.pool(f"layers.{index + 1}", _JOINS[config.join](layers.build, name, output, x), kernel=2)
        channels, index = width, index + 2
    return layers.program(x, channels)
