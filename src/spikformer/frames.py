"""Which shapes a model takes, as images or event frames; with or without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spikformer.config import check_divisible


class InputSize(Protocol):
    """What a network takes: a ModelConfig, or a program of the engine."""

    @property
    def in_channels(self) -> int: ...
    @property
    def image_size(self) -> tuple[int, int] | None: ...
    @property
    def patch_size(self) -> int: ...


def check_frames(shape: Sequence[int], config: InputSize) -> None:
    """Static images [B, C, H, W] or event frames [T, B, C, H, W], of the model's size.

    Frames bring their own T, so a batch with samples first cannot be told from one with steps first.
    """
    if len(shape) not in (4, 5):
        raise ValueError(
            "Expected images [B, C, H, W] or event frames [T, B, C, H, W], "
            f"got {len(shape)} dimensions {list(shape)}; a single image needs x[None]."
        )
    check_frame(shape, config)


def check_frame(shape: Sequence[int], config: InputSize) -> None:
    """Something in every dimension, the model's channels, and its height and width last."""
    if 0 in shape:
        raise ValueError(f"Expected at least one sample and one step, got an empty batch {list(shape)}.")
    *_, channels, height, width = shape
    if channels != config.in_channels:
        raise ValueError(f"Expected {config.in_channels} channels, got {channels} in {list(shape)}.")
    if config.image_size is None:
        check_divisible((height, width), config.patch_size)
    elif (height, width) != config.image_size:
        wanted_height, wanted_width = config.image_size
        raise ValueError(
            f"Expected images of {wanted_height}×{wanted_width}, got {height}×{width}; resize them, or make the model "
            f"with image_size=({height}, {width})."
        )
