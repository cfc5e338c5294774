"""Max-ResNet: a residual network of membranes that max-pools before its neurons instead of striding."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from spikformer.config import MaxResNetConfig
from spikformer.layers import ConvNorm, PreActivationConv, ResidualBlock, Stage, Stream
from spikformer.layers.stem import to_tokens
from spikformer.layers.time import apply_neuron
from spikformer.models.base import SpikingNetwork
from spikformer.models.registry import register_architecture
from spikformer.neurons import neuron_factory


class MaxResNet(SpikingNetwork):
    """Y = mean over steps of Head(mean over positions of SN(U)), with membranes U ← BN(Conv(SN(BN(Conv(SN(U)))))) + U.

    Where width or resolution change, the shortcut is BN(Conv(U)): that weight reads membranes, all others but the first
    read spikes. Tokens are the positions of the last map.
    """

    config: MaxResNetConfig

    def __init__(self, config: MaxResNetConfig) -> None:
        super().__init__(config)
        self.num_features = config.num_features
        self.stem = ConvNorm(config.in_channels, config.stem_width)
        self.stages = Stage(Stage(blocks) for blocks in _stages(config))
        self.output_neuron = neuron_factory(config)()
        self.head = self.build_head()

    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        return to_tokens(self.stages(self.stem(frames, stream, repeats), stream))

    def pool(self, tokens: Tensor, stream: Stream | None = None) -> Tensor:
        """The share [T, B, D] of tokens that fire."""
        return super().pool(apply_neuron(self.output_neuron, tokens, stream))

    def initialise_head(self, head: nn.Module) -> nn.Module:
        """PyTorch's own initial weights."""
        return head


def _stages(config: MaxResNetConfig) -> Iterator[list[ResidualBlock]]:
    neuron, channels = neuron_factory(config), config.stem_width
    for index, (width, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
        blocks = []
        for block in range(depth):
            pooled = bool(index) and block == 0
            layers = [PreActivationConv(channels, width, neuron, pooled), PreActivationConv(width, width, neuron)]
            shortcut = None
            if pooled or channels != width:
                shortcut = ConvNorm(channels, width, kernel_size=1, stride=2 if pooled else 1)
            blocks.append(ResidualBlock(layers, shortcut))
            channels = width
        yield blocks


register_architecture("max_resnet", MaxResNet, MaxResNetConfig)
