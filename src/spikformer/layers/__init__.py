"""The parts of the network, from a conv-norm-spike unit to the encoder block."""

from spikformer.layers.attention import AttentionState, SpikingSelfAttention
from spikformer.layers.block import BlockState, EncoderBlock
from spikformer.layers.mlp import MLPState, SpikingMLP
from spikformer.layers.products import Linear
from spikformer.layers.spiking import SpikingConv, SpikingLinear
from spikformer.layers.stem import SpikingPatchSplitting, StemState

__all__ = [
    "AttentionState",
    "BlockState",
    "EncoderBlock",
    "Linear",
    "MLPState",
    "SpikingConv",
    "SpikingLinear",
    "SpikingMLP",
    "SpikingPatchSplitting",
    "SpikingSelfAttention",
    "StemState",
]
