"""Configs: everything that decides a network's shape and mathematics, validated on construction. No torch."""

from spikformer.config.hierarchical import EmbeddingSizes, HierarchicalConfig
from spikformer.config.max_resnet import MaxResNetConfig
from spikformer.config.maxformer import MaxFormerConfig
from spikformer.config.network import (
    CONVENTIONAL,
    LARGEST_ACTIVATION,
    Attention,
    Initialisation,
    LinearInit,
    NetworkConfig,
    NetworkShape,
    Neuron,
    Surrogate,
    add_choice,
    check_divisible,
    check_frame,
    check_frames,
)
from spikformer.config.qkformer import MSQKFormerConfig, QKFormerConfig, TokenAttentionConfig
from spikformer.config.residual import Join, ResidualConfig
from spikformer.config.sew_event_net import SEWEventConfig
from spikformer.config.sew_resnet import SEWResNetConfig
from spikformer.config.transformer import (
    AttentionConfig,
    ModelConfig,
    PoolAfter,
    SpikeDrivenConfig,
    SpikingformerConfig,
    TransformerConfig,
)

__all__ = [
    "CONVENTIONAL",
    "LARGEST_ACTIVATION",
    "Attention",
    "AttentionConfig",
    "EmbeddingSizes",
    "HierarchicalConfig",
    "Initialisation",
    "Join",
    "LinearInit",
    "MSQKFormerConfig",
    "MaxFormerConfig",
    "MaxResNetConfig",
    "ModelConfig",
    "NetworkConfig",
    "NetworkShape",
    "Neuron",
    "PoolAfter",
    "QKFormerConfig",
    "ResidualConfig",
    "SEWEventConfig",
    "SEWResNetConfig",
    "SpikeDrivenConfig",
    "SpikingformerConfig",
    "Surrogate",
    "TokenAttentionConfig",
    "TransformerConfig",
    "add_choice",
    "check_divisible",
    "check_frame",
    "check_frames",
]
