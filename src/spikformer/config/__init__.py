"""Configs: everything that decides a network's shape and mathematics, validated on construction. No torch."""

from spikformer.config.max_resnet import MaxResNetConfig
from spikformer.config.network import (
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
from spikformer.config.residual import Join, ResidualConfig
from spikformer.config.sew_event_net import SEWEventConfig
from spikformer.config.sew_resnet import SEWResNetConfig
from spikformer.config.spike_driven_transformer import SpikeDrivenConfig
from spikformer.config.spikformer import ModelConfig
from spikformer.config.spikingformer import SpikingformerConfig
from spikformer.config.transformer import PoolAfter, TransformerConfig

__all__ = [
    "Attention",
    "InputSize",
    "Join",
    "LinearInit",
    "MaxResNetConfig",
    "ModelConfig",
    "NetworkConfig",
    "Neuron",
    "PoolAfter",
    "ResidualConfig",
    "SEWEventConfig",
    "SEWResNetConfig",
    "SpikeDrivenConfig",
    "SpikingformerConfig",
    "Surrogate",
    "TransformerConfig",
    "add_choice",
    "check_divisible",
    "check_frame",
    "check_frames",
]
