"""What spiking transformers in stages share: a stem, blocks, and down-sampling between the stages.

Blocks are counted through all stages: with depths (1, 2, 7), blocks 1 and 2 are the second stage's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from torch import Tensor, nn

from spikformer.config import HierarchicalConfig, Initialisation
from spikformer.layers import ConvNorm, SpikingMLP, SpikingSelfAttention, Stream
from spikformer.layers.time import to_tokens
from spikformer.models.base import SpikingNetwork, truncated_normal
from spikformer.neurons import neuron_factory


class HierarchicalNetwork(SpikingNetwork):
    """Y = Head(mean over tokens and steps of the last stage), whose tokens are the pixels of its map."""

    config: HierarchicalConfig

    def __init__(
        self, config: HierarchicalConfig, embeddings: Iterable[nn.Module], block: Callable[[int], nn.Module]
    ) -> None:
        """`embeddings` are the stem and the down-samplings; `block` builds a block of a stage, counted from 0."""
        super().__init__(config)
        self.num_features = config.embed_dim
        self.stem, *between = embeddings
        self.downsampling = nn.ModuleList(between)
        stages = (stage for stage, depth in enumerate(config.depths) for _ in range(depth))
        self.blocks = nn.ModuleList(block(stage) for stage in stages)
        self.head = self.build_head()

    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        x = self.stem(frames, stream, repeats)
        blocks = iter(self.blocks)
        for stage, depth in enumerate(self.config.depths):
            if stage > 0:
                x = self.downsampling[stage - 1](x, stream)
            for block in islice(blocks, depth):
                x = block(x, stream)
        return to_tokens(x)


class MembraneNetwork(HierarchicalNetwork):
    """Stages whose residual streams are membranes: every weight but the first convolution's sees spikes.

    Y = mean over steps of Head(SN(mean over tokens)).
    """

    def __init__(
        self,
        config: HierarchicalConfig,
        embeddings: Iterable[nn.Module],
        block: Callable[[int], nn.Module],
        initialisation: Initialisation,
    ) -> None:
        super().__init__(config, embeddings, block)
        self.head_neuron = neuron_factory(config)()
        self.initialisation = initialisation
        if initialisation == "convolutions":  # Official: attention is of another class of convolutions, left alone
            for unit in self.modules():
                if isinstance(unit, ConvNorm):
                    truncated_normal(unit.conv)
                elif isinstance(unit, SpikingMLP):
                    truncated_normal(unit.hidden.linear)
                    truncated_normal(unit.output.linear)
        self.initialise_head(self.head)

    def initialise_head(self, head: nn.Module) -> nn.Module:
        return truncated_normal(head) if self.initialisation == "head" else head


def stage_attention(
    config: HierarchicalConfig, stage: int, *, membrane: bool, batch_leak: bool = False
) -> SpikingSelfAttention:
    """Attention of Q, K and V in the last stage, token attention in the others."""
    last = stage == config.last_stage
    return SpikingSelfAttention(
        config.widths[stage],
        config.num_heads,
        neuron_factory(config),
        neuron_factory(config, v_threshold=config.attention_v_threshold),
        variant=config.attention if last else "token",
        scale=config.attention_scale,
        qkv_bias=False,
        membrane=membrane,
        batch_leak=batch_leak and last,
        grid=config.grid if last else None,
    )


def stage_mlp(config: HierarchicalConfig, stage: int, *, membrane: bool) -> SpikingMLP:
    """On membranes as wide inside as outside with an inner residual sum."""
    width, hidden = config.widths[stage], config.hidden_dims[stage]
    inner_residual = membrane and hidden == width
    return SpikingMLP(width, hidden, neuron_factory(config), membrane=membrane, inner_residual=inner_residual)
