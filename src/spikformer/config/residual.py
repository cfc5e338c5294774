"""ResidualConfig: what convolutional residual networks share: the widths of their stages, and sizes that follow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple

from spikformer.config.network import CONVENTIONAL, NetworkConfig
from spikformer.errors import FieldError, shown
from spikformer.validation import counts

Join = Literal["add", "and", "iand"]
"""How a block joins its output with its shortcut; see `layers.block`."""

MOST_STAGES, DEEPEST_STAGE = 20, 1000  # 2^20 is beyond any image


class Convolution(NamedTuple):
    """A convolution without a bias, and a norm after it."""

    in_channels: int
    out_channels: int
    kernel_size: int
    reduction: int
    """What height and width of the image are divided by at its output."""


@dataclass(frozen=True)
class ResidualConfig(NetworkConfig):
    """A network of convolutions in stages. An architecture lists its convolutions; its sizes follow from them."""

    widths: tuple[int, ...] = counts((64, 128, 256, 512), MOST_STAGES)
    """Channels of each stage."""

    def __post_init__(self) -> None:
        for name in ("widths", "depths"):
            value: Any = getattr(self, name, None)
            if isinstance(value, list):  # as JSON has it
                object.__setattr__(self, name, tuple(value))
        super().__post_init__()

    @abstractmethod
    def convolutions(self) -> Iterator[Convolution]:
        """Every convolution of the network."""

    @classmethod
    def stages_like(cls, num_stages: int, width: int) -> dict[str, Any]:
        """As many stages, each with the blocks of a ResNet-18 and twice the width of the one before."""
        return {"widths": tuple(width << stage for stage in range(num_stages)), "depths": (2,) * num_stages}

    @property
    def num_features(self) -> int:
        """What the head reads of a step."""
        return self.widths[-1]

    @property
    def num_neuron_layers(self) -> int:
        """One after each convolution, unless an architecture says otherwise."""
        return sum(1 for _ in self.convolutions())

    @property
    def num_parameters(self) -> int:
        """Of the network, from its sizes alone."""
        time_constants = self.num_neuron_layers if self.neuron == "plif" else 0
        units = sum(conv.in_channels * conv.out_channels * conv.kernel_size**2 for conv in self.convolutions())
        norms = sum(2 * conv.out_channels for conv in self.convolutions())
        return units + norms + time_constants + (self.num_features + 1) * self.num_classes

    @property
    def largest_activation(self) -> int:
        pixels = prod(self._image_size_or_default())
        sizes = (conv.out_channels * pixels // conv.reduction**2 for conv in self.convolutions())
        return max(super().largest_activation, self.time_steps * max(sizes))

    @property
    def fewest_tensors(self) -> int:
        return sum(1 for _ in self.convolutions())

    def check_same_length(self, depths: tuple[int, ...]) -> None:
        if len(depths) != len(self.widths):
            raise FieldError(
                "depths",
                f"depths must list the blocks of each of the {len(self.widths)} stages in widths, got {shown(depths)}.",
            )


def check_join(join: Join, neuron: str) -> None:
    """Raise FieldError for a join of spikes in a network without any."""
    if join != "add" and neuron in CONVENTIONAL:
        raise FieldError("join", f"join={join!r} is for spikes, which neuron={neuron!r} does not make; take 'add'.")
