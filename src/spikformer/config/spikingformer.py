"""SpikingformerConfig: everything that decides a Spikingformer's shape and mathematics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from spikformer.config.transformer import PoolAfter, TransformerConfig
from spikformer.validation import choice


@dataclass(frozen=True)
class SpikingformerConfig(TransformerConfig):
    """One Spikingformer. The defaults are Spikingformer-4-384 on CIFAR-10; `presets` holds every published model."""

    pool_after: PoolAfter = choice("neuron", get_args(PoolAfter))
    """Where pools of the patch splitting act: on spikes (`neuron`), or on membranes before the neuron (`norm`: CML)."""

    @property
    def title(self) -> str:
        return f"{'CML-' * (self.pool_after == 'norm')}Spikingformer-{self.depth}-{self.embed_dim}"
