"""The MLP and the encoder block: X' = X + SSA(X), X'' = X' + MLP(X')."""

from __future__ import annotations

from torch import Tensor, nn

from spikformer.layers.linear import SpikingLinear
from spikformer.layers.time import Stream
from spikformer.neurons import LIF, NeuronFactory


class SpikingMLP(nn.Module):
    """Two layers of Linear → BN → SN on tokens [T, B, N, D]."""

    def __init__(self, dim: int, hidden_dim: int, neuron: NeuronFactory = LIF) -> None:
        super().__init__()
        self.hidden = SpikingLinear(dim, hidden_dim, neuron=neuron)
        self.output = SpikingLinear(hidden_dim, dim, neuron=neuron)

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        return self.output(self.hidden(x, stream), stream)


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
