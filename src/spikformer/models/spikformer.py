"""Spikformer: the whole network, for still images, event frames and streams of frames.

Shapes: T steps, B samples, C channels, N tokens, D features, K classes.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from spikformer.card import ModelCard
from spikformer.config import ModelConfig
from spikformer.layers import BlockState, EncoderBlock, Linear, SpikingPatchSplitting, StemState
from spikformer.layers.products import batch_invariant
from spikformer.layers.time import over_time
from spikformer.models.inputs import check_input, check_state, check_stream


class ModelState(NamedTuple):
    """The voltage of every neuron, between two steps of a stream."""

    stem: StemState
    blocks: tuple[BlockState, ...]


class Spikformer(nn.Module):
    """Y = Head(mean over tokens and steps of Encoder(SPS(I))) (paper Sec. 3.1).

    Stateless: every call starts from rest, there is nothing to reset. Streams carry their state outside:

        state = model.initial_state(batch_size)
        for frame in frames:
            logits, state = model.step(frame, state)
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.card = ModelCard(architecture="spikformer")
        self.stem = SpikingPatchSplitting(config)
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.depth))
        self.head = Linear(config.embed_dim, config.num_classes)
        self._initialise()

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, K] of still images [B, C, H, W] or event frames [T, B, C, H, W]."""
        return self.forward_steps(x).mean(0)

    def forward_steps(self, x: Tensor) -> Tensor:
        """The readout [T, B, K] after each step on its own; its mean over steps is `forward`."""
        check_input(x, self.config, self.like)
        still = x.ndim == 4
        frames = x.unsqueeze(0) if still else x  # [T or 1, B, C, H, W]
        logits, _ = self._run(frames, None, repeats=self.config.time_steps if still else 1)
        return logits

    def step(self, x: Tensor, state: ModelState) -> tuple[Tensor, ModelState]:
        """One frame [B, C, H, W] of a stream: its readout [B, K], equal to `forward_steps`, and the state after it."""
        check_stream(x, self.config, self.like, self.training)
        expected = self._initial_state(len(x), x.shape[-2], x.shape[-1], like=self.like.to("meta"))
        check_state(state, expected)
        logits, state = self._run(x.unsqueeze(0), state)
        return logits.squeeze(0), state

    def initial_state(self, batch_size: int, image_size: tuple[int, int] | None = None) -> ModelState:
        """Every neuron at rest. `image_size` is needed, and taken, only where the config leaves it open."""
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number of at least 1, got {batch_size!r}.")
        if (image_size is None) == (self.config.image_size is None):
            given = (
                "leaves image_size open; give initial_state one" if image_size is None else "fixes image_size already"
            )
            raise ValueError(f"This model's config {given}.")
        height, width = self.config.override(image_size=image_size or self.config.image_size).image_size or (0, 0)
        return self._initial_state(batch_size, height, width, like=self.like)

    @property
    def like(self) -> Tensor:
        """A weight: inputs must have its dtype and be on its device. The head is not asked, for it may be replaced."""
        return self.stem.position.conv.weight

    @torch.no_grad()
    def resting_readout(self) -> Tensor:
        """The readout [K] of a step in which no spike reaches the head."""
        return self.head(self.like.new_zeros(1, self.config.embed_dim))[0]

    def _initial_state(self, batch_size: int, height: int, width: int, like: Tensor) -> ModelState:
        num_tokens = height * width // self.config.patch_size**2
        blocks = (block.initial_state(batch_size, num_tokens, like) for block in cast(list[EncoderBlock], self.blocks))
        return ModelState(self.stem.initial_state(batch_size, height, width, like), tuple(blocks))

    def _run(self, frames: Tensor, state: ModelState | None, repeats: int = 1) -> tuple[Tensor, ModelState]:
        x, stem_state = self.stem(frames, state and state.stem, repeats)
        block_states = []
        for index, block in enumerate(self.blocks):
            x, block_state = block(x, state and state.blocks[index])
            block_states.append(block_state)
        return over_time(self._read_out, x), ModelState(stem_state, tuple(block_states))

    def _read_out(self, tokens: Tensor) -> Tensor:
        """[B, N, D] to [B, K]."""
        return self.head(batch_invariant(lambda x: x.mean(1), tokens, training=self.training))

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, Linear) and (self.config.linear_init == "trunc_normal" or module is self.head):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
