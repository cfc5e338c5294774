"""MaxResNetConfig: everything that decides a Max-ResNet's shape and mathematics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from spikformer.config.residual import DEEPEST_STAGE, MOST_STAGES, Convolution, ResidualConfig
from spikformer.config.transformer import TransformerConfig
from spikformer.validation import count, counts


@dataclass(frozen=True)
class MaxResNetConfig(ResidualConfig):
    """One Max-ResNet. The defaults are Max-ResNet-18 on CIFAR-10.

    The first block of each stage but the first halves the map, by a max-pool where other networks have a stride.
    """

    widths: tuple[int, ...] = counts((128, 256, 512), MOST_STAGES)
    depths: tuple[int, ...] = counts((3, 3, 2), MOST_STAGES, most=DEEPEST_STAGE)
    """Blocks of each stage."""
    stem_width: int = count(64)

    COMPARED: ClassVar[Mapping[str, Mapping[str, Any]]] = {"": {}}

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        stages = cls.stages_like(like.patch_size.bit_length(), width)
        return super().sizes_like(like, width) | stages | {"stem_width": width // 2}

    @property
    def title(self) -> str:
        return f"Max-ResNet-{2 * sum(self.depths) + 2}"

    @property
    def patch_size(self) -> int:
        return 2 ** (len(self.widths) - 1)

    @property
    def num_neuron_layers(self) -> int:
        return 2 * sum(self.depths) + 1

    def convolutions(self) -> Iterator[Convolution]:
        yield Convolution(self.in_channels, self.stem_width, 3, 1)
        channels = self.stem_width
        for stage, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            for block in range(depth):
                pooled = bool(stage) and block == 0
                yield Convolution(channels, width, 3, 2 ** (stage - pooled))
                yield Convolution(width, width, 3, 2**stage)
                if pooled or channels != width:
                    yield Convolution(channels, width, 1, 2**stage)
                channels = width

    def miniature(self) -> Self:
        small = super().miniature()
        return small.override(
            widths=tuple(max(4, width // 8) for width in self.widths),
            depths=tuple(min(depth, 2) for depth in self.depths),
            stem_width=max(4, self.stem_width // 8),
        )

    def check(self) -> None:
        super().check()
        self.check_same_length(self.depths)
