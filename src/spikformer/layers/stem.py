"""From frames to tokens (paper Sec. 3.1 and 3.2), and from one stage's map to the next.

Networks of one width start with patch splitting. In networks in stages an embedding is in front of each: it changes
the width of a map, and often halves its resolution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from torch import Tensor, nn

from spikformer.config import PoolAfter
from spikformer.errors import FieldError
from spikformer.layers.conv import ConvNorm, PreActivationConv, SpikingConv
from spikformer.layers.time import Stream, apply_neuron, to_tokens
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


class ConvEmbedding(nn.Module):
    """y = stages(x), then branch(y) + shortcut(y) on maps [T, B, C, H, W]; the shortcut is one 1×1 convolution.

    Units are Conv → BN → [pool] → SN, and spikes are summed. With `membrane` they are SN → Conv → BN → [pool]: the
    first stage reads frames without a neuron, one `neuron` makes the spikes that both paths read, membranes are summed.
    `halved` says which of the convolutions halve height and width: by a pool, or by a stride of their own if `strided`.
    The shortcut follows by its stride, or by a pool if `pooled_shortcut`.
    """

    def __init__(
        self,
        in_channels: int,
        stages: Sequence[int],
        branch: Sequence[int],
        halved: Sequence[bool],
        neuron: NeuronFactory = LIF,
        *,
        membrane: bool = False,
        strided: bool = False,
        pooled_shortcut: bool = False,
    ) -> None:
        super().__init__()
        if (strided or pooled_shortcut) and not membrane:
            raise FieldError(
                "membrane", "Strided convolutions and pooled shortcuts are for membranes; pass membrane=True."
            )
        before, beside = halved[: len(stages)], halved[len(stages) :]
        forked, width = (in_channels, *stages)[-1], branch[-1]
        factor = 2 ** sum(beside)
        if pooled_shortcut and factor != 2:
            raise FieldError(
                "pooled_shortcut", f"A pooled shortcut halves its map once, its branch does so {sum(beside)} times."
            )
        if membrane:
            self.stages = nn.ModuleList(membrane_stages(in_channels, stages, before, neuron, strided))
            self.neuron = neuron()
            self.branch = nn.ModuleList(membrane_stages(forked, branch, beside, neuron, strided))
            stride = 1 if pooled_shortcut else factor
            self.shortcut: ConvNorm = ConvNorm(forked, width, pooled_shortcut, kernel_size=1, stride=stride)
        else:
            self.stages = nn.ModuleList(spiking_stages(in_channels, stages, before, neuron, "norm"))
            self.branch = nn.ModuleList(spiking_stages(forked, branch, beside, neuron, "norm"))
            self.shortcut = SpikingConv(forked, width, neuron, kernel_size=1, stride=factor)

    def forward(self, x: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        """One frame with `repeats` T is a static image."""
        for index, stage in enumerate(self.stages):
            x = stage(x, stream, repeats if index == 0 else 1)
        if hasattr(self, "neuron"):
            x = apply_neuron(self.neuron, x, stream)
        y = x
        for unit in self.branch:
            y = unit(y, stream)
        return y + self.shortcut(x, stream)


def membrane_stages(
    in_channels: int, widths: Sequence[int], halved: Sequence[bool], neuron: NeuronFactory, strided: bool
) -> list[nn.Module]:
    """Conv → BN of these widths with neurons between them; `halved` says which have a pool, or a stride of two."""
    units: list[nn.Module] = []
    for (inputs, outputs), halves in zip(pairwise((in_channels, *widths)), halved, strict=True):
        stride, pooled = 2 if halves and strided else 1, halves and not strided
        if units:
            units.append(PreActivationConv(inputs, outputs, neuron, pooled, stride=stride))
        else:
            units.append(ConvNorm(inputs, outputs, pooled, stride=stride))
    return units
