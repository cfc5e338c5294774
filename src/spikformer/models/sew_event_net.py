"""SEW's networks for event cameras (Fang et al., 2021): 7B-Net and Wide-7B-Net, a block and a max-pool a stage."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from spikformer.config import SEWEventConfig
from spikformer.layers import MaxPool, ResidualBlock, SpikingConv, Stream
from spikformer.layers.stem import to_tokens
from spikformer.models.base import SpikingNetwork
from spikformer.models.registry import register_architecture
from spikformer.neurons import neuron_factory


class SEWEventNet(SpikingNetwork):
    """Y = mean over steps of Head(X), with stages X ← pool(g(SN(BN(Conv(SN(BN(Conv(X)))))), X)).

    The head reads all positions of the last map: with seven stages on 128×128 pixels there is one.
    """

    config: SEWEventConfig

    def __init__(self, config: SEWEventConfig) -> None:
        super().__init__(config)
        self.num_features = config.num_features
        self.layers = nn.ModuleList(_layers(config))
        self.head = self.build_head()

    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        first, *others = self.layers
        x = first(frames, stream, repeats)
        for layer in others:
            x = layer(x, stream)
        return to_tokens(x)

    def pool(self, tokens: Tensor, stream: Stream | None = None) -> Tensor:
        """Tokens [T, B, N, D] to [T, B, D·N]: all of them, channel by channel."""
        return tokens.transpose(-1, -2).flatten(-2)

    def initialise_head(self, head: nn.Module) -> nn.Module:
        """PyTorch's own initial weights."""
        return head


def _layers(config: SEWEventConfig) -> Iterator[nn.Module]:
    neuron, channels = neuron_factory(config), config.in_channels
    for width in config.widths:
        if channels != width:
            yield SpikingConv(channels, width, neuron, kernel_size=1)
        yield ResidualBlock([SpikingConv(width, width, neuron) for _ in range(2)], join=config.join)
        yield MaxPool(2)
        channels = width


register_architecture("sew_event_net", SEWEventNet, SEWEventConfig)
