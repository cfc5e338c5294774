"""SEWResNetConfig: everything that decides a SEW-ResNet's shape and mathematics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

from spikformer.config.hierarchical import FULL_STEM_HALVINGS
from spikformer.config.network import CHOICES, Neuron, Surrogate
from spikformer.config.residual import DEEPEST_STAGE, MOST_STAGES, Convolution, Join, ResidualConfig, check_join
from spikformer.config.transformer import TransformerConfig
from spikformer.errors import FieldError
from spikformer.validation import choice, count, counts, flag, number

Block = Literal["basic", "bottleneck"]
_KERNELS: dict[str, tuple[int, ...]] = {"basic": (3, 3), "bottleneck": (1, 3, 1)}
_EXPANSION = {"basic": 1, "bottleneck": 4}


@dataclass(frozen=True)
class SEWResNetConfig(ResidualConfig):
    """One SEW-ResNet. The defaults are SEW-ResNet-18 on ImageNet; `presets` holds every published model.

    Each stage but the first starts with a stride of 2, and so does the stem, which has a max-pool besides.
    """

    image_size: tuple[int, int] | None = (224, 224)
    num_classes: int = count(1000, least=0)
    neuron: Neuron = choice("if", CHOICES["neuron"])
    surrogate: Surrogate = choice("arctan", get_args(Surrogate))
    surrogate_alpha: float = number(2.0, above=0)

    depths: tuple[int, ...] = counts((2, 2, 2, 2), MOST_STAGES, most=DEEPEST_STAGE)
    """Blocks of each stage."""
    block: Block = choice("basic", get_args(Block))
    """Two 3×3 convolutions, or 1×1, 3×3 and 1×1 to four times the width."""
    join: Join = choice("add", get_args(Join))
    """A block's output s and its shortcut x: s + x (integers), s · x, or x · (1 − s); the last two are binary."""
    stem_kernel_size: int = count(7)
    stem_stride: int = count(2, most=16)
    stem_pool: bool = flag(True)
    """Whether a max-pool halves the map after the stem's neuron."""
    zero_init: bool = flag(False)
    """Whether blocks of `if` neurons start as the identity: the last norm of each starts with zero weight."""

    COMPARED: ClassVar[Mapping[str, Mapping[str, Any]]] = {"": {}}

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        halvings = like.patch_size.bit_length() - 1
        full = halvings <= FULL_STEM_HALVINGS
        stem = {"stem_kernel_size": 3, "stem_stride": 1, "stem_pool": False} if full else {}
        stages = cls.stages_like(halvings + 1 if full else halvings - 1, width)
        return super().sizes_like(like, width) | stem | stages

    @property
    def title(self) -> str:
        layers = len(self.kernel_sizes) * sum(self.depths) + 2
        return f"SEW-ResNet-{layers}{'' if self.join == 'add' else f'-{self.join.upper()}'}"

    @property
    def patch_size(self) -> int:
        return self.stem_stride * (2 if self.stem_pool else 1) * 2 ** (len(self.widths) - 1)

    @property
    def kernel_sizes(self) -> tuple[int, ...]:
        """Of a block's convolutions; the first 3×3 has its stride."""
        return _KERNELS[self.block]

    @property
    def expansion(self) -> int:
        """Channels that leave a block, over the width of its stage."""
        return _EXPANSION[self.block]

    @property
    def num_features(self) -> int:
        return self.widths[-1] * self.expansion

    def convolutions(self) -> Iterator[Convolution]:
        channels, reduction = self.widths[0], self.stem_stride
        yield Convolution(self.in_channels, channels, self.stem_kernel_size, reduction)
        reduction *= 2 if self.stem_pool else 1
        for stage, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            out_channels = width * self.expansion
            for block in range(depth):
                before, reduction = reduction, reduction * (2 if stage and not block else 1)
                inside = (*[width] * (len(self.kernel_sizes) - 1), out_channels)
                first, reads = self.kernel_sizes.index(3), channels
                for index, (kernel_size, writes) in enumerate(zip(self.kernel_sizes, inside, strict=True)):
                    yield Convolution(reads, writes, kernel_size, before if index < first else reduction)
                    reads = writes
                if channels != out_channels or before != reduction:
                    yield Convolution(channels, out_channels, 1, reduction)
                channels = out_channels

    def miniature(self) -> Self:
        widths = tuple(max(4, width // 8) for width in self.widths)
        return super().miniature().override(widths=widths, depths=tuple(min(depth, 2) for depth in self.depths))

    def check(self) -> None:
        super().check()
        self.check_same_length(self.depths)
        if self.stem_kernel_size % 2 == 0:
            raise FieldError(
                "stem_kernel_size",
                f"stem_kernel_size must be odd, so that it has a centre, got {self.stem_kernel_size}.",
            )
        check_join(self.join, self.neuron)
