"""Max-Former (Fang et al., 2025): stages with membrane shortcuts, max-pools in every embedding, early convolutions."""

from __future__ import annotations

from torch import nn

from spikformer.config import MaxFormerConfig
from spikformer.layers import ConvBlock, ConvEmbedding, MapBlock, PreActivationConv
from spikformer.models.hierarchical import MembraneNetwork, stage_attention, stage_mlp
from spikformer.models.registry import register_architecture
from spikformer.neurons import neuron_factory


class MaxFormer(MembraneNetwork):
    """Stages of U ← U + BN(DWConv(SN(U))), a last one of U ← U + BN(Linear(SSA(SN(U)))), each with MLPs."""

    config: MaxFormerConfig

    def __init__(self, config: MaxFormerConfig) -> None:
        neuron = neuron_factory(config)
        stem, *between = config.embeddings
        # Official: on CIFAR the stem's two paths have a neuron each; they read the same, so one does for both.
        embeddings = [
            ConvEmbedding(*stem, neuron, membrane=True, strided=config.stem == "quarter"),
            *(ConvEmbedding(*sizes, neuron, membrane=True, pooled_shortcut=True) for sizes in between),
        ]

        def block(stage: int) -> nn.Module:
            mlp = stage_mlp(config, stage, membrane=True)
            if stage == config.last_stage:
                return MapBlock(stage_attention(config, stage, membrane=True), mlp)
            width, kernel = config.widths[stage], config.mixer_kernels[stage]
            if kernel == 0:
                return ConvBlock(None, mlp)
            mixer = PreActivationConv(width, width, neuron, kernel_size=kernel, groups=width, bias=True)
            return ConvBlock(mixer, mlp)

        super().__init__(config, embeddings, block, config.initialisation)


register_architecture("maxformer", MaxFormer, MaxFormerConfig)
