"""The parts of a network, from a conv-norm-spike unit to the encoder block: they take sizes and make neurons."""

from spikformer.layers.attention import (
    AttentionVariant,
    Gating,
    SpikingSelfAttention,
    TokenMixing,
    register_attention,
)
from spikformer.layers.block import ConvBlock, EncoderBlock, MapBlock, MaxPool, ResidualBlock, SpikingMLP, Stage
from spikformer.layers.conv import ConvNorm, PreActivationConv, SpikingConv
from spikformer.layers.linear import Linear, LinearNorm, PreActivationLinear, SpikingLinear, batch_invariant
from spikformer.layers.stem import ConvEmbedding, PatchSplitting, SpikingPatchSplitting, spiking_stages
from spikformer.layers.time import Stream, StreamState

__all__ = [
    "AttentionVariant",
    "ConvBlock",
    "ConvEmbedding",
    "ConvNorm",
    "EncoderBlock",
    "Gating",
    "Linear",
    "LinearNorm",
    "MapBlock",
    "MaxPool",
    "PatchSplitting",
    "PreActivationConv",
    "PreActivationLinear",
    "ResidualBlock",
    "SpikingConv",
    "SpikingLinear",
    "SpikingMLP",
    "SpikingPatchSplitting",
    "SpikingSelfAttention",
    "Stage",
    "Stream",
    "StreamState",
    "TokenMixing",
    "batch_invariant",
    "register_attention",
    "spiking_stages",
]
