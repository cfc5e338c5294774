"""Spike-driven Transformer (Yao et al., 2023): membrane shortcuts, and attention by masks instead of products."""

from __future__ import annotations

from torch import Tensor, nn

from spikformer.config import SpikeDrivenConfig
from spikformer.layers import ConvNorm, PatchSplitting, PreActivationConv, Stream, spiking_stages
from spikformer.models.base import SpikingNetwork, truncated_normal
from spikformer.models.registry import register_architecture
from spikformer.models.spikingformer import membrane_block
from spikformer.neurons import neuron_factory


class SpikeDrivenTransformer(SpikingNetwork):
    """Y = mean over steps of Head(SN(mean over tokens of U)), with membranes U; the head sees spikes, too.

    `forward_steps` is what a loss of every step on its own (TET) reads.
    """

    config: SpikeDrivenConfig

    def __init__(self, config: SpikeDrivenConfig) -> None:
        super().__init__(config)
        neuron, dim = neuron_factory(config), config.embed_dim
        self.num_features = dim
        *widths, _ = config.stage_channels
        *pooled, last_pooled = config.pool_stages
        self.stem = PatchSplitting(
            [
                *spiking_stages(config.in_channels, widths, pooled, neuron, "neuron"),
                ConvNorm((config.in_channels, *widths)[-1], dim, last_pooled),
            ],
            PreActivationConv(dim, dim, neuron),
        )
        inner_residual = config.mlp_dim == dim
        self.blocks = nn.ModuleList(membrane_block(config, inner_residual) for _ in range(config.depth))
        self.head_neuron = neuron()
        for module in self.modules():
            truncated_normal(module)
        self.head = self.build_head()

    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        x = self.stem(frames, stream, repeats)
        for block in self.blocks:
            x = block(x, stream)
        return x

    def initialise_head(self, head: nn.Module) -> nn.Module:
        """PyTorch's own initial weights."""
        return head


register_architecture("spike_driven_transformer", SpikeDrivenTransformer, SpikeDrivenConfig)
