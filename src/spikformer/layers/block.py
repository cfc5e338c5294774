"""Residual blocks, of attention and an MLP (X' = X + SSA(X), X'' = X' + MLP(X')) and of convolutions on maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor, nn

from spikformer.config import Join
from spikformer.layers.conv import channels_last
from spikformer.layers.linear import PreActivationLinear, SpikingLinear
from spikformer.layers.time import Stream, over_time, over_tokens
from spikformer.neurons import LIF, NeuronFactory

_JOINS: dict[Join, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda output, shortcut: output + shortcut,
    "and": lambda output, shortcut: output * shortcut,
    "iand": lambda output, shortcut: shortcut * (1 - output),
}


class SpikingMLP(nn.Module):
    """Two layers of Linear → BN → SN on tokens [T, B, N, D], or of SN → Linear → BN on a membrane.

    With an inner residual sum, x and the hidden layer h are summed: h + output(x + h) is what the block adds to x.
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        neuron: NeuronFactory = LIF,
        *,
        membrane: bool = False,
        inner_residual: bool = False,
    ) -> None:
        super().__init__()
        layer = PreActivationLinear if membrane else SpikingLinear
        self.hidden = layer(dim, hidden_dim, neuron=neuron)
        self.output = layer(hidden_dim, dim, neuron=neuron)
        self.inner_residual = inner_residual

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        hidden = self.hidden(x, stream)
        if self.inner_residual:
            return hidden + self.output(x + hidden, stream)
        return self.output(hidden, stream)


class EncoderBlock(nn.Module):
    """Attention and MLP, each beside a residual sum. No layer norm, dropout or drop-path.

    What is summed is up to the two: spikes, whose sums are small integers, or membranes.
    """

    def __init__(self, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.mlp = mlp

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        x = x + self.attention(x, stream)
        return x + self.mlp(x, stream)


class MapBlock(EncoderBlock):
    """The same on a map [T, B, D, H, W], whose pixels are the tokens."""

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        return over_tokens(lambda tokens: EncoderBlock.forward(self, tokens, stream), x)


class ConvBlock(nn.Module):
    """A convolution instead of attention, or nothing, and an MLP, each beside a residual sum, on a map."""

    def __init__(self, conv: nn.Module | None, mlp: nn.Module) -> None:
        super().__init__()
        if conv is not None:
            self.conv = conv
        self.mlp = mlp

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        if hasattr(self, "conv"):
            x = x + self.conv(x, stream)
        return x + over_tokens(lambda tokens: self.mlp(tokens, stream), x)


class Stage(nn.ModuleList):
    """Layers or blocks one after the other, each with the stream."""

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        for layer in self:
            x = layer(x, stream)
        return x


class ResidualBlock(nn.Module):
    """The output of some layers and a shortcut, or x itself, joined element by element.

    `add` is of spikes (sums are small integers) or of membranes. On spikes, `and` is 1 where both are, and `iand` where
    the shortcut is 1 and the output is not: both stay binary.
    """

    def __init__(self, layers: Iterable[nn.Module], shortcut: nn.Module | None = None, join: Join = "add") -> None:
        super().__init__()
        self.layers = Stage(layers)
        self.shortcut = shortcut
        self.join = join

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        output = self.layers(x, stream)
        return _JOINS[self.join](output, x if self.shortcut is None else self.shortcut(x, stream))


class MaxPool(nn.MaxPool2d):
    """Max-pool on [T, B, C, H, W]; of equal maxima, the first of a window receives the gradient."""

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        pool = super().forward
        return over_time(lambda samples: pool(channels_last(samples)), x)
