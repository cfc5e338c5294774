"""Configs: everything that decides a network's shape and mathematics, validated on construction. No torch."""

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
from spikformer.config.spikformer import ModelConfig

__all__ = [
    "Attention",
    "InputSize",
    "LinearInit",
    "ModelConfig",
    "NetworkConfig",
    "Neuron",
    "Surrogate",
    "add_choice",
    "check_divisible",
    "check_frame",
    "check_frames",
]
