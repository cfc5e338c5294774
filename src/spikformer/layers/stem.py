"""Spiking Patch Splitting and position embedding: from frames to spike-form tokens (paper Sec. 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from spikformer.layers.conv import SpikingConv, halve
from spikformer.layers.time import Stream, over_time
from spikformer.neurons import LIF, NeuronFactory


class SpikingPatchSplitting(nn.Module):
    """SPS: blocks of Conv → BN → SN → MaxPool, then X₀ = x + RPE with RPE = SN(BN(Conv(x))).

    `widths` are the channels of each block, the last one D; `pooled` says which of them end in a pool.
    """

    def __init__(
        self, in_channels: int, widths: Sequence[int], pooled: Sequence[bool], neuron: NeuronFactory = LIF
    ) -> None:
        super().__init__()
        self.stages = nn.ModuleList(SpikingConv(*sizes, neuron) for sizes in pairwise((in_channels, *widths)))
        self.pooled = tuple(pooled)
        self.position = SpikingConv(widths[-1], widths[-1], neuron)

    def forward(self, x: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        """Frames [T, B, C, H, W] to tokens [T, B, N, D]. One frame with `repeats` T is a static image."""
        for index, (stage, pooled) in enumerate(zip(self.stages, self.pooled, strict=True)):
            x = stage(x, stream, repeats if index == 0 else 1)
            x = over_time(halve, x) if pooled else x
        return to_tokens(x + self.position(x, stream))


def to_tokens(x: Tensor) -> Tensor:
    """A map [T, B, D, H, W] as tokens [T, B, N, D], row by row; of a channels-last map it is a view."""
    return x.flatten(-2).transpose(-1, -2)
