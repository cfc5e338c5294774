"""MaxFormerConfig: everything that decides a Max-Former's shape and mathematics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from spikformer.config.hierarchical import HierarchicalConfig
from spikformer.config.network import Initialisation
from spikformer.config.transformer import TransformerConfig
from spikformer.errors import FieldError, shown
from spikformer.validation import choice, is_integer

_LARGEST_KERNEL = 99


@dataclass(frozen=True)
class MaxFormerConfig(HierarchicalConfig):
    """One Max-Former. The defaults are 4-384 on CIFAR-10; `presets` holds every published model.

    With `mlp_ratio` 1 the MLPs have an inner residual sum.
    """

    mixer_kernels: tuple[int, ...] = (0, 3)
    """Of each stage but the last, the kernel of the depthwise convolution that mixes its tokens; 0 is none."""
    initialisation: Initialisation = choice("head", get_args(Initialisation))

    def __post_init__(self) -> None:
        kernels: Any = self.mixer_kernels
        if not isinstance(kernels, list | tuple) or not all(_is_kernel(kernel) for kernel in kernels):
            raise FieldError(
                "mixer_kernels",
                f"mixer_kernels must list odd numbers of at most {_LARGEST_KERNEL}, or 0 for no convolution, "
                f"got {shown(kernels)}.",
            )
        object.__setattr__(self, "mixer_kernels", tuple(kernels))
        super().__post_init__()

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        """Kernels of CIFAR, where the first stage mixes nothing, or of ImageNet; the last of them for fewer stages."""
        sizes = super().sizes_like(like, width)
        count = len(sizes["depths"]) - 1
        first, last = (0, 3) if sizes["stem"] == "full" else (7, 5)
        return sizes | {"mixer_kernels": (*[first] * (count - 1), last)[-count:] if count else ()}

    @property
    def title(self) -> str:
        return f"Max-Former-{self.depth}-{self.embed_dim}"

    def mixer_parameters(self, stage: int) -> int:
        if self.has_heads(stage):
            return super().mixer_parameters(stage)
        kernel, width = self.mixer_kernels[stage], self.widths[stage]
        return (kernel**2 + 3) * width if kernel else 0

    def mixer_neurons(self, stage: int) -> int:
        return super().mixer_neurons(stage) if self.has_heads(stage) else int(self.mixer_kernels[stage] > 0)

    def check(self) -> None:
        super().check()
        if len(self.mixer_kernels) != self.last_stage:
            raise FieldError(
                "mixer_kernels",
                f"mixer_kernels must have an entry for each stage but the last, {self.last_stage} of them with "
                f"depths={self.depths}, got {shown(self.mixer_kernels)}.",
            )


def _is_kernel(value: Any) -> bool:
    return is_integer(value) and (value == 0 or (value % 2 == 1 and 1 <= value <= _LARGEST_KERNEL))
