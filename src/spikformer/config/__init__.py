"""Configs: everything that decides a network's shape and mathematics, validated on construction. No torch."""

from spikformer.config.network import (
    LARGEST_ACTIVATION,
    Attention,
    InputSize,
    LinearInit,
    NetworkConfig,
    Neuron,
    Surrogate,
    add_choice,
    check_divisible,
    check_frame,
    check_frames,
)
from spikformer.config.spike_driven_transformer import SpikeDrivenConfig
from spikformer.config.spikformer import ModelConfig
from spikformer.config.spikingformer import SpikingformerConfig
from spikformer.config.transformer import PoolAfter, TransformerConfig

__all__ = [
    "LARGEST_ACTIVATION",
    "Attention",
    "InputSize",
    "LinearInit",
    "ModelConfig",
    "NetworkConfig",
    "Neuron",
    "PoolAfter",
    "SpikeDrivenConfig",
    "SpikingformerConfig",
    "Surrogate",
    "TransformerConfig",
    "add_choice",
    "check_divisible",
    "check_frame",
    "check_frames",
]
