"""HierarchicalConfig: spiking transformers in stages, each with half the resolution and twice the width of the last."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Literal, NamedTuple, Self, get_args

from spikformer.config.transformer import SOFTMAX, AttentionConfig, TransformerConfig
from spikformer.errors import FieldError, shown
from spikformer.validation import choice, count, is_integer

Stem = Literal["full", "quarter", "eighth"]

FULL_STEM_HALVINGS = 2  # of a comparison: beyond, a network starts at a quarter of the resolution, as on ImageNet
_MOST_STAGES = 8
_MOST_BLOCKS = 1000  # of a stage


class EmbeddingSizes(NamedTuple):
    """Convolutions in front of a stage: `stages`, one after another, then `branch` beside a shortcut of one 1×1."""

    in_channels: int
    stages: tuple[int, ...]
    """Widths of the 3×3 convolutions that both paths share."""
    branch: tuple[int, ...]
    """Widths of those beside the shortcut."""
    halved: tuple[bool, ...]
    """Of each of them, whether height and width are halved there."""


@dataclass(frozen=True)
class HierarchicalConfig(AttentionConfig):
    """Stages of blocks: the last has width D, the one before D/2, …; attention of Q, K and V is in the last alone.

    An architecture's own config says what mixes tokens in the others, and what its parameters are.
    """

    num_heads: int = count(8)
    depths: tuple[int, ...] = (1, 1, 2)
    """Blocks of each stage."""
    stem: Stem = choice("full", get_args(Stem))
    """Resolution of the first stage: that of the image (CIFAR), a quarter (ImageNet) or an eighth of it (events)."""

    def __post_init__(self) -> None:
        depths: Any = self.depths
        listed = isinstance(depths, list | tuple) and 1 <= len(depths) <= _MOST_STAGES
        if not listed or not all(is_integer(depth) and 1 <= depth <= _MOST_BLOCKS for depth in depths):
            raise FieldError(
                "depths",
                f"depths must list the blocks, 1 to {_MOST_BLOCKS}, of each of at most {_MOST_STAGES} stages, "
                f"got {shown(depths)}; CIFAR uses (1, 1, 2).",
            )
        object.__setattr__(self, "depths", tuple(depths))
        super().__post_init__()

    @classmethod
    def sizes_like(cls, like: TransformerConfig, width: int) -> dict[str, Any]:
        """One block in each stage, and all of the other network's in the last."""
        halvings = like.patch_size.bit_length() - 1
        full = halvings <= FULL_STEM_HALVINGS
        depths = (*[1] * (halvings if full else halvings - 2), like.depth)
        return super().sizes_like(like, width) | {"stem": "full" if full else "quarter", "depths": depths}

    @property
    def depth(self) -> int:
        """Blocks of all stages."""
        return sum(self.depths)

    def miniature(self) -> Self:
        return super().miniature().override(depths=tuple(min(depth, 2) for depth in self.depths))

    @property
    def last_stage(self) -> int:
        return len(self.depths) - 1

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the stages' tokens: … D/4, D/2, D."""
        return tuple(self.embed_dim // 2 ** (self.last_stage - stage) for stage in range(len(self.depths)))

    @property
    def hidden_dims(self) -> tuple[int, ...]:
        """Of the stages' MLPs."""
        return tuple(round(width * self.mlp_ratio) for width in self.widths)

    @property
    def patch_size(self) -> int:
        return {"full": 1, "quarter": 4, "eighth": 8}[self.stem] * 2**self.last_stage

    @property
    def halved(self) -> tuple[bool, bool]:
        """Which of the two convolutions between stages halves height and width."""
        return True, False

    @property
    def embeddings(self) -> tuple[EmbeddingSizes, ...]:
        """The stem, then what lies between the stages."""
        width, image = self.widths[0], self.in_channels
        stem = {
            "full": EmbeddingSizes(image, (width // 2,), (width,), (False, False)),
            "quarter": EmbeddingSizes(image, (width // 2,), (width, width), (True, True, False)),
            "eighth": EmbeddingSizes(image, (width // 8, width // 4), (width // 2, width), (False, True, True, True)),
        }[self.stem]
        between = (EmbeddingSizes(last, (), (width, width), self.halved) for last, width in pairwise(self.widths))
        return stem, *between

    @property
    def num_parameters(self) -> int:
        """Of the network, from its sizes alone."""
        time_constants = self.num_neuron_layers if self.neuron == "plif" else 0
        total = (self.embed_dim + 1) * self.num_classes + time_constants
        for sizes in self.embeddings:
            widths = (sizes.in_channels, *sizes.stages, *sizes.branch)
            forks = widths[len(sizes.stages)]
            total += sum(9 * inputs * outputs + 2 * outputs for inputs, outputs in pairwise(widths))
            total += forks * widths[-1] + 2 * widths[-1]
        for stage, (depth, width, hidden) in enumerate(zip(self.depths, self.widths, self.hidden_dims, strict=True)):
            total += depth * (self.mixer_parameters(stage) + self.mlp_parameters(width, hidden))
        return total

    def mixer_parameters(self, stage: int) -> int:
        """Of what mixes tokens in one block of a stage: attention with Q, K, V and a projection."""
        width = self.widths[stage]
        return 4 * width * width + 9 * width

    @property
    def num_neuron_layers(self) -> int:
        """Layers of spiking neurons; with membrane shortcuts, the head has one and the first convolution none."""
        convolutions = sum(len(sizes.stages) + len(sizes.branch) for sizes in self.embeddings)
        return convolutions + sum(depth * (self.mixer_neurons(stage) + 2) for stage, depth in enumerate(self.depths))

    def mixer_neurons(self, stage: int) -> int:
        """Layers of neurons that mix tokens in a block of a stage: Q, K, V, their product, and projection or input."""
        return 5

    @property
    def largest_activation(self) -> int:
        pixels, sizes = prod(self._image_size_or_default()), []
        for embedding, hidden in zip(self.embeddings, self.hidden_dims, strict=True):
            widths = (*embedding.stages, *embedding.branch)
            if not embedding.stages:
                sizes.append(pixels * widths[-1])  # a shortcut that is pooled afterwards
            for width, halved in zip(widths, embedding.halved, strict=True):
                sizes.append(width * pixels)
                pixels //= 4 if halved else 1
            sizes.append(pixels * max(widths[-1], hidden))
        if self.attention in SOFTMAX:
            sizes.append(self.num_heads * pixels**2)
        return max(super().largest_activation, self.time_steps * max(sizes))

    @property
    def fewest_tensors(self) -> int:
        return self.depth + len(self.depths)

    def check(self) -> None:
        super().check()
        divisor = 2**self.last_stage * (8 if self.stem == "eighth" else 2)
        if self.embed_dim % divisor:
            raise FieldError(
                "embed_dim",
                f"embed_dim must be divisible by {divisor}, because {len(self.depths)} stages and a stem of "
                f"{self.stem!r} resolution halve it, got {self.embed_dim}.",
            )
        for stage, width in enumerate(self.widths):
            self.check_width(width, self.has_heads(stage))

    def has_heads(self, stage: int) -> bool:
        """Whether blocks of a stage have attention."""
        return stage == self.last_stage
