"""SpikeDrivenConfig: everything that decides a Spike-driven Transformer's shape and mathematics."""

from __future__ import annotations

from dataclasses import dataclass

from spikformer.config.network import CHOICES, Attention
from spikformer.config.transformer import TransformerConfig
from spikformer.validation import choice, count


@dataclass(frozen=True)
class SpikeDrivenConfig(TransformerConfig):
    """One Spike-driven Transformer. The defaults are 2-512 on CIFAR-10; `presets` holds every published model.

    All pools of the patch splitting act on spikes but the last one, which acts on the membrane. With `mlp_ratio` 1 the
    MLP has an inner residual sum.
    """

    embed_dim: int = count(512)
    depth: int = count(2)
    num_heads: int = count(8)
    attention: Attention = choice("spike_driven", CHOICES["attention"])
    """`spike_driven_dilated` passes K, V, K ⊙ V and the masked Q through 3×3 max filters, as on CIFAR10-DVS."""

    @property
    def title(self) -> str:
        return f"SpikeDrivenTransformer-{self.depth}-{self.embed_dim}"
