"""Residual blocks of convolutions on maps [T, B, C, H, W]."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor, nn

from spikformer.config import Join
from spikformer.layers.conv import channels_last
from spikformer.layers.time import Stream, over_time

_JOINS: dict[Join, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda output, shortcut: output + shortcut,
    "and": lambda output, shortcut: output * shortcut,
    "iand": lambda output, shortcut: shortcut * (1 - output),
}


class Stage(nn.ModuleList):
    """Layers or blocks one after the other, each with the stream."""

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        for layer in self:
            x = layer(x, stream)
        return x


class ResidualBlock(nn.Module):
    """The output of some layers and a shortcut, or x itself, joined element by element.

    `add` is of spikes (sums are small integers) or of membranes. On spikes, `and` is 1 where both are, and `iand` where
    the shortcut is 1 and the output is not: both stay binary.
    """

    def __init__(self, layers: Iterable[nn.Module], shortcut: nn.Module | None = None, join: Join = "add") -> None:
        super().__init__()
        self.layers = Stage(layers)
        self.shortcut = shortcut
        self.join = join

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        output = self.layers(x, stream)
        return _JOINS[self.join](output, x if self.shortcut is None else self.shortcut(x, stream))


class MaxPool(nn.MaxPool2d):
    """Max-pool on [T, B, C, H, W]; of equal maxima, the first of a window receives the gradient."""

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        pool = super().forward
        return over_time(lambda samples: pool(channels_last(samples)), x)
