"""Spiking Patch Splitting and position embedding: from frames to spike-form tokens (paper Sec. 3.1 and 3.2)."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, cast

import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers.spiking import SpikingConv, channels_last
from spikformer.layers.time import over_time


class StemState(NamedTuple):
    """Voltages [B, C, H, W] of each block and of the position embedding; None is a neuron at rest."""

    stages: tuple[Tensor | None, ...]
    position: Tensor | None


class SpikingPatchSplitting(nn.Module):
    """SPS: blocks of Conv → BN → SN → MaxPool, then X₀ = x + RPE with RPE = SN(BN(Conv(x)))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        widths = (config.in_channels, *config.stage_channels)
        self.stages = nn.ModuleList(SpikingConv(narrow, wide, config) for narrow, wide in pairwise(widths))
        self.pooled = config.pool_stages
        self.position = SpikingConv(config.embed_dim, config.embed_dim, config)

    def forward(self, x: Tensor, state: StemState | None = None, repeats: int = 1) -> tuple[Tensor, StemState]:
        """Frames [T, B, C, H, W] to tokens [T, B, N, D]. One frame with `repeats` T is a still image."""
        voltages: list[Tensor | None] = []
        for index, (stage, pooled) in enumerate(zip(self.stages, self.pooled, strict=True)):
            x, voltage = stage(x, state and state.stages[index], repeats if index == 0 else 1)
            x = over_time(halve, x) if pooled else x
            voltages.append(voltage)
        position, position_voltage = self.position(x, state and state.position)
        tokens = (x + position).flatten(-2).transpose(-1, -2)  # [T, B, N, D]
        return tokens, StemState(tuple(voltages), position_voltage)

    def initial_state(self, batch_size: int, height: int, width: int, like: Tensor) -> StemState:
        voltages = []
        for stage, pooled in zip(cast(list[SpikingConv], self.stages), self.pooled, strict=True):
            voltages.append(stage.at_rest(batch_size, height, width, like))
            height, width = (height // 2, width // 2) if pooled else (height, width)
        return StemState(tuple(voltages), self.position.at_rest(batch_size, height, width, like))


def halve(x: Tensor) -> Tensor:
    """The max-pool of a block, on [B, C, H, W]: a spike anywhere in the window is a spike."""
    return F.max_pool2d(channels_last(x), kernel_size=3, stride=2, padding=1)
