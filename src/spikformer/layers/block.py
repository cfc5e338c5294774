"""The encoder block: X' = X + SSA(X), X'' = X' + MLP(X'). Residual sums are small whole numbers, not spikes."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers.attention import AttentionState, SpikingSelfAttention
from spikformer.layers.mlp import MLPState, SpikingMLP


class BlockState(NamedTuple):
    """Voltages of one encoder block."""

    attention: AttentionState | None = None
    mlp: MLPState | None = None


class EncoderBlock(nn.Module):
    """Attention and MLP, each beside a residual sum. No layer norm, dropout or drop-path."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SpikingSelfAttention(config)
        self.mlp = SpikingMLP(config)

    def forward(self, x: Tensor, state: BlockState | None = None) -> tuple[Tensor, BlockState]:
        state = state or BlockState()
        attended, attention_state = self.attention(x, state.attention)
        x = x + attended
        refined, mlp_state = self.mlp(x, state.mlp)
        return x + refined, BlockState(attention_state, mlp_state)

    def initial_state(self, batch_size: int, num_tokens: int, like: Tensor) -> BlockState:
        shape = (batch_size, num_tokens, like)
        return BlockState(self.attention.initial_state(*shape), self.mlp.initial_state(*shape))
