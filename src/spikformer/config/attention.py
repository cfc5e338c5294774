"""AttentionConfig: what all spiking transformers share: width, heads, MLP and attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from spikformer.config.network import CHOICES, Attention, NetworkConfig
from spikformer.errors import FieldError
from spikformer.validation import choice, count, number

if TYPE_CHECKING:
    from spikformer.config.transformer import TransformerConfig

SOFTMAX = ("softmax", "softmax_float_value")
DILATED = "spike_driven_dilated"


@dataclass(frozen=True)
class AttentionConfig(NetworkConfig):
    """A spiking transformer of any layout, whose last tokens are D = `embed_dim` wide.

    Symbols of the paper: T `time_steps`, D `embed_dim`, h `num_heads`, s `attention_scale`, τ `tau`,
    V_th `v_threshold`, V_reset `v_reset`, α `surrogate_alpha`.
    """

    embed_dim: int = count(384)
    num_heads: int = count(12)
    mlp_ratio: float = number(4.0, above=0)
    """Width of an MLP's hidden layer over that of its input."""

    attention: Attention = choice("ssa", CHOICES["attention"])
    attention_scale: float = number(0.125, above=0)
    """s in Q Kᵀ V · s. The softmax variants scale by 1/√d instead; `none`, `spike_driven` and
    `token` have nothing to scale."""
    attention_v_threshold: float = number(0.5)
    """Threshold of the one neuron that reads the product of Q, K and V."""

    COMPARED: ClassVar[Mapping[str, Mapping[str, Any]]] = {"": {}}

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        attending = {"num_heads": like.num_heads, "mlp_ratio": like.mlp_ratio, "embed_dim": width}
        return super().sizes_like(like, width) | attending

    def miniature(self) -> Self:
        divides = self.num_heads <= 8 and 64 % self.num_heads == 0
        return super().miniature().override(embed_dim=64 if divides else 8 * self.num_heads)

    @property
    def head_dim(self) -> int:
        return self.embed_dim // self.num_heads

    @property
    def mlp_dim(self) -> int:
        return round(self.embed_dim * self.mlp_ratio)

    def check(self) -> None:
        super().check()
        if self.attention == DILATED and self.image_size is None:
            raise FieldError(
                "image_size",
                f"image_size must be given with attention={DILATED!r}, whose filter needs rows and columns, got None.",
            )

    def check_width(self, width: int, has_heads: bool = True) -> None:
        """Raise FieldError unless heads and MLP fit tokens of a width."""
        if has_heads and width % self.num_heads:
            fitting = [heads for heads in range(1, 129) if width % heads == 0]
            nearest = min(fitting, key=lambda heads: abs(heads - self.num_heads))
            name = "embed_dim" if width == self.embed_dim else f"a stage's width with embed_dim {self.embed_dim}"
            raise FieldError(
                "num_heads", f"{name} ({width}) must be divisible by num_heads, got {self.num_heads}; try {nearest}."
            )
        hidden = width * self.mlp_ratio
        if abs(hidden - round(hidden)) > 1e-6 or round(hidden) < 1:
            raise FieldError("mlp_ratio", f"width × mlp_ratio must be an integer, got {width} × {self.mlp_ratio}.")

    @staticmethod
    def mlp_parameters(width: int, hidden: int) -> int:
        """Of two linear layers with biases, and their norms."""
        return 2 * width * hidden + 3 * (hidden + width)
