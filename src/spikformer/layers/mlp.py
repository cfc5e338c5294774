"""The MLP of an encoder block."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers.spiking import SpikingLinear
from spikformer.neurons import build_neuron


class MLPState(NamedTuple):
    """Voltages [B, N, hidden] and [B, N, D]; None is a neuron at rest."""

    hidden: Tensor | None = None
    output: Tensor | None = None


class SpikingMLP(nn.Module):
    """Two layers of Linear → BN → SN on tokens [T, B, N, D]."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.hidden = SpikingLinear(config.embed_dim, config.mlp_dim, True, build_neuron(config))
        self.output = SpikingLinear(config.mlp_dim, config.embed_dim, True, build_neuron(config))

    def forward(self, x: Tensor, state: MLPState | None = None) -> tuple[Tensor, MLPState]:
        state = state or MLPState()
        x, hidden_voltage = self.hidden(x, state.hidden)
        x, output_voltage = self.output(x, state.output)
        return x, MLPState(hidden_voltage, output_voltage)

    def initial_state(self, batch_size: int, num_tokens: int, like: Tensor) -> MLPState:
        shape = (batch_size, num_tokens, like)
        return MLPState(self.hidden.at_rest(*shape), self.output.at_rest(*shape))
