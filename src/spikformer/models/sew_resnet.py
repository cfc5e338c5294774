"""SEW-ResNet (Fang et al., 2021): residual blocks whose spikes are joined element-wise (SEW) with their shortcut's."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from spikformer.config import SEWResNetConfig
from spikformer.layers import ResidualBlock, SpikingConv, Stage, Stream
from spikformer.layers.stem import to_tokens
from spikformer.models.base import SpikingNetwork
from spikformer.models.registry import register_architecture
from spikformer.neurons import neuron_factory


class SEWResNet(SpikingNetwork):
    """Y = Head(mean over positions and steps of X), with blocks X ← g(SN(BN(Conv(… X))), shortcut of X).

    Joined by `add`, X is small integers; by `and` or `iand`, spikes. Tokens are the positions of the last map.
    """

    config: SEWResNetConfig

    def __init__(self, config: SEWResNetConfig) -> None:
        super().__init__(config)
        self.num_features = config.num_features
        self.stem = SpikingConv(
            config.in_channels,
            config.widths[0],
            neuron_factory(config),
            "neuron" if config.stem_pool else None,
            kernel_size=config.stem_kernel_size,
            stride=config.stem_stride,
            copies_counted=False,  # Official: the image is normalised once, then repeated
        )
        self.stages = Stage(Stage(blocks) for blocks in _stages(config))
        for module in self.modules():
            # On "meta" there is nothing to fill, and PyTorch would import its compiler for it: seconds of every load.
            if isinstance(module, nn.Conv2d) and not module.weight.is_meta:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if config.zero_init:
            self._start_as_identity()
        self.head = self.build_head()

    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        return to_tokens(self.stages(self.stem(frames, stream, repeats), stream))

    def initialise_head(self, head: nn.Module) -> nn.Module:
        """PyTorch's own initial weights."""
        return head

    def _start_as_identity(self) -> None:
        """Silent last neurons leave a shortcut as it is, where spikes are multiplied those that always fire."""
        for block in self.modules():
            if isinstance(block, ResidualBlock):
                last = block.layers[-1]
                assert isinstance(last, SpikingConv)
                norm = last.norm
                nn.init.zeros_(norm.weight)
                nn.init.constant_(norm.bias, 1.0 if self.config.join == "and" else 0.0)


def _stages(config: SEWResNetConfig) -> Iterator[list[ResidualBlock]]:
    channels, out_of_block = config.widths[0], config.expansion
    for index, (width, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
        blocks = []
        for block in range(depth):
            blocks.append(_block(config, channels, width, stride=2 if index and not block else 1))
            channels = width * out_of_block
        yield blocks


def _block(config: SEWResNetConfig, in_channels: int, width: int, stride: int) -> ResidualBlock:
    neuron, kernels = neuron_factory(config), config.kernel_sizes
    out_channels = width * config.expansion
    widths = (in_channels, *[width] * (len(kernels) - 1), out_channels)
    strides = [stride if index == kernels.index(3) else 1 for index in range(len(kernels))]
    layers = [
        SpikingConv(reads, writes, neuron, kernel_size=kernel, stride=step)
        for reads, writes, kernel, step in zip(widths, widths[1:], kernels, strides, strict=False)
    ]
    shortcut = None
    if stride > 1 or in_channels != out_channels:
        shortcut = SpikingConv(in_channels, out_channels, neuron, kernel_size=1, stride=stride)
    return ResidualBlock(layers, shortcut, config.join)


register_architecture("sew_resnet", SEWResNet, SEWResNetConfig)
