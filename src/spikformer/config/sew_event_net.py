"""SEWEventConfig: everything that decides the shape and mathematics of SEW's networks for event cameras."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Self, get_args

from spikformer.config.network import CHOICES, Neuron, Surrogate
from spikformer.config.residual import MOST_STAGES, Convolution, Join, ResidualConfig, check_join
from spikformer.errors import FieldError
from spikformer.validation import choice, count, counts, number


@dataclass(frozen=True)
class SEWEventConfig(ResidualConfig):
    """A network of one SEW block and one 2×2 max-pool a stage. The defaults are the one for DVS128 Gesture (7B-Net).

    A stage whose width is not that of the map before it starts with a 1×1 convolution. The head reads the last map
    position by position, so the image size cannot be open.
    """

    image_size: tuple[int, int] | None = (128, 128)
    in_channels: int = count(2)
    num_classes: int = count(11, least=0)
    time_steps: int = count(16)
    neuron: Neuron = choice("plif", CHOICES["neuron"])
    surrogate: Surrogate = choice("arctan", get_args(Surrogate))
    surrogate_alpha: float = number(2.0, above=0)

    widths: tuple[int, ...] = counts((32,) * 7, MOST_STAGES)
    join: Join = choice("add", get_args(Join))
    """A block's output s and its shortcut x: s + x (integers), s · x, or x · (1 − s); the last two are binary."""

    @property
    def title(self) -> str:
        join = "" if self.join == "add" else f"-{self.join.upper()}"
        return f"SEW-{len(self.widths)}B-{self.widths[-1]}{join}"

    @property
    def patch_size(self) -> int:
        return 2 ** len(self.widths)

    @property
    def num_features(self) -> int:
        return self.widths[-1] * prod(self.grid or (1, 1))

    def convolutions(self) -> Iterator[Convolution]:
        channels = self.in_channels
        for stage, width in enumerate(self.widths):
            if channels != width:
                yield Convolution(channels, width, 1, 2**stage)
            yield from 2 * [Convolution(width, width, 3, 2**stage)]
            channels = width

    def miniature(self) -> Self:
        small = self.override(widths=tuple(max(4, width // 8) for width in self.widths[::3]))
        return super(SEWEventConfig, small).miniature()  # of the smaller patches

    def check(self) -> None:
        super().check()
        if self.image_size is None:
            raise FieldError(
                "image_size", "image_size must be given, because the head reads every position of the map, got None."
            )
        if self.widths[0] == self.in_channels:
            raise FieldError(
                "widths",
                f"widths must not start with in_channels, got {self.in_channels} for both: without a convolution in "
                "front the first block would join spikes with counts of events.",
            )
        check_join(self.join, self.neuron)
