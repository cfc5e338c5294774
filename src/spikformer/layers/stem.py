"""Patch splitting and position embedding: from frames to tokens (paper Sec. 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from torch import Tensor, nn

from spikformer.config import PoolAfter
from spikformer.layers.conv import SpikingConv
from spikformer.layers.time import Stream, to_tokens
from spikformer.neurons import LIF, NeuronFactory


class PatchSplitting(nn.Module):
    """Convolutional stages, then a position embedding of their result x: x + position(x), or position(x) alone.

    Whether tokens are spikes or membranes is up to the two.
    """

    def __init__(self, stages: Iterable[nn.Module], position: nn.Module, shortcut: bool = True) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.position = position
        self.shortcut = shortcut

    def forward(self, x: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        """Frames [T, B, C, H, W] to tokens [T, B, N, D]. One frame with `repeats` T is a static image."""
        for index, stage in enumerate(self.stages):
            x = stage(x, stream, repeats if index == 0 else 1)
        position = self.position(x, stream)
        return to_tokens(x + position if self.shortcut else position)


class SpikingPatchSplitting(PatchSplitting):
    """SPS: blocks of Conv → BN → SN with pools, then X₀ = x + RPE with RPE = SN(BN(Conv(x))); see `spiking_stages`."""

    def __init__(
        self,
        in_channels: int,
        widths: Sequence[int],
        pooled: Sequence[bool],
        neuron: NeuronFactory = LIF,
        pool_after: PoolAfter = "neuron",
    ) -> None:
        stages = spiking_stages(in_channels, widths, pooled, neuron, pool_after)
        super().__init__(stages, SpikingConv(widths[-1], widths[-1], neuron))


def spiking_stages(
    in_channels: int, widths: Sequence[int], pooled: Sequence[bool], neuron: NeuronFactory, pool_after: PoolAfter
) -> list[nn.Module]:
    """Conv → BN → SN of these widths; `pooled` says which of them have a pool, after the neuron or after the norm."""
    sizes = zip(pairwise((in_channels, *widths)), pooled, strict=True)
    return [SpikingConv(*channels, neuron, pool_after if pool else None) for channels, pool in sizes]
