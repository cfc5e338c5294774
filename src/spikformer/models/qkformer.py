"""QKFormer (Zhou et al., 2024), and MS-QKFormer, the same with membrane shortcuts: token attention in early stages."""

from __future__ import annotations

import warnings

from torch import nn

from spikformer.config import MSQKFormerConfig, QKFormerConfig
from spikformer.layers import ConvEmbedding, MapBlock
from spikformer.models.hierarchical import HierarchicalNetwork, MembraneNetwork, stage_attention, stage_mlp
from spikformer.models.registry import register_architecture
from spikformer.neurons import neuron_factory


class QKFormer(HierarchicalNetwork):
    """Stages of X ← X + SN(BN(Linear(SN₀.₅(Σ Q) ⊙ K))), a last one of SSA, each with MLPs; X sums spikes."""

    config: QKFormerConfig

    def __init__(self, config: QKFormerConfig) -> None:
        if config.batch_leak:
            warnings.warn(
                "QKFormer with batch_leak=True computes as its published code: a sample's potential leaks into the "
                "next sample of its batch, so results depend on the batch's size and order. Leave batch_leak False "
                "for anything but checks of published weights.",
                UserWarning,
                stacklevel=2,
            )
        neuron = neuron_factory(config)

        def block(stage: int) -> nn.Module:
            attention = stage_attention(config, stage, membrane=False, batch_leak=config.batch_leak)
            return MapBlock(attention, stage_mlp(config, stage, membrane=False))

        super().__init__(config, (ConvEmbedding(*sizes, neuron) for sizes in config.embeddings), block)
        self.initialise_head(self.head)


class MSQKFormer(MembraneNetwork):
    """Stages of U ← U + BN(Linear(SN₀.₅(Σ Q) ⊙ K)), with Q and K of SN(U), a last one of SSA, each with MLPs."""

    config: MSQKFormerConfig

    def __init__(self, config: MSQKFormerConfig) -> None:
        neuron = neuron_factory(config)

        def block(stage: int) -> nn.Module:
            attention = stage_attention(config, stage, membrane=True)
            return MapBlock(attention, stage_mlp(config, stage, membrane=True))

        embeddings = (ConvEmbedding(*sizes, neuron, membrane=True) for sizes in config.embeddings)
        super().__init__(config, embeddings, block, config.initialisation)


register_architecture("qkformer", QKFormer, QKFormerConfig)
register_architecture("ms_qkformer", MSQKFormer, MSQKFormerConfig)
