"""QKFormerConfig and MSQKFormerConfig: everything that decides the shape and mathematics of the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from spikformer.config.hierarchical import HierarchicalConfig
from spikformer.config.network import CONVENTIONAL, Initialisation
from spikformer.errors import FieldError
from spikformer.validation import choice, flag

PooledConv = Literal["first", "second"]


@dataclass(frozen=True)
class TokenAttentionConfig(HierarchicalConfig):
    """Token attention in every stage but the last."""

    pooled_conv: PooledConv = choice("second", get_args(PooledConv))
    """Which of the two convolutions between stages has the pool: the first on ImageNet, the second elsewhere."""

    @property
    def halved(self) -> tuple[bool, bool]:
        return self.pooled_conv == "first", self.pooled_conv == "second"

    def mixer_parameters(self, stage: int) -> int:
        width = self.widths[stage]
        without_value = 0 if stage == self.last_stage else width * width + 2 * width
        return super().mixer_parameters(stage) - without_value

    def mixer_neurons(self, stage: int) -> int:
        return super().mixer_neurons(stage) - (stage != self.last_stage)  # token attention has no V

    def check(self) -> None:
        super().check()
        if len(self.depths) == 1 and self.pooled_conv != "second":
            raise FieldError("pooled_conv", "pooled_conv has no effect with one stage; leave it 'second'.")

    def has_heads(self, stage: int) -> bool:
        return True


@dataclass(frozen=True)
class QKFormerConfig(TokenAttentionConfig):
    """One QKFormer. The defaults are 4-384 on CIFAR-10; `presets` holds every published model."""

    batch_leak: bool = flag(False)
    """Whether the last stage's projection neurons read all samples of a batch as one sequence, as published.

    A sample's potential then leaks into the next sample, and results depend on the batch: for checks of published
    weights alone.
    """

    @property
    def title(self) -> str:
        return f"QKFormer-{self.depth}-{self.embed_dim}"

    @property
    def num_neuron_layers(self) -> int:
        return super().num_neuron_layers + len(self.embeddings)  # one for each shortcut

    @property
    def mixes_samples(self) -> bool:
        return self.batch_leak

    def check(self) -> None:
        super().check()
        if self.batch_leak and self.neuron in CONVENTIONAL:
            raise FieldError(
                "batch_leak", f"batch_leak has no effect with neuron={self.neuron!r}, which keeps no potential."
            )


@dataclass(frozen=True)
class MSQKFormerConfig(TokenAttentionConfig):
    """One MS-QKFormer: QKFormer with membrane shortcuts. The defaults are 4-384 on CIFAR-10.

    With `mlp_ratio` 1 the MLPs have an inner residual sum.
    """

    initialisation: Initialisation = choice("head", get_args(Initialisation))

    @property
    def title(self) -> str:
        return f"MS-QKFormer-{self.depth}-{self.embed_dim}"
