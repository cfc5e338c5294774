"""The MLP and the encoder block: X' = X + SSA(X), X'' = X' + MLP(X')."""

from __future__ import annotations

from torch import Tensor, nn

from spikformer.layers.linear import PreActivationLinear, SpikingLinear
from spikformer.layers.time import Stream
from spikformer.neurons import LIF, NeuronFactory


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
