"""What a model says to an input it cannot take: what was expected, what was given, what to do."""

from __future__ import annotations

import torch
from torch import Tensor

from spikformer.config import ModelConfig, check_divisible


def check_input(x: Tensor, config: ModelConfig, weight: Tensor) -> None:
    """Still images [B, C, H, W] or event frames [T, B, C, H, W], of the model's size and dtype, finite."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Expected a torch.Tensor, got {type(x).__name__}; convert it with torch.as_tensor.")
    if x.ndim not in (4, 5):
        raise ValueError(
            "Expected images [B, C, H, W] or event frames [T, B, C, H, W], "
            f"got {x.ndim} dimensions {list(x.shape)}; a single image needs x.unsqueeze(0)."
        )
    _check_frames(x, config, weight)


def check_stream(x: Tensor, voltage: Tensor | None, config: ModelConfig, weight: Tensor, training: bool) -> None:
    """One frame [B, C, H, W] that fits the state it meets."""
    if training:
        raise ValueError(
            "step needs a model in eval mode: batch statistics of one step are not those of all; call eval()."
        )
    if not isinstance(x, Tensor) or x.ndim != 4:
        given = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"step expects one frame [B, C, H, W], got {given}.")
    _check_frames(x, config, weight)
    if voltage is not None and (len(voltage), *voltage.shape[-2:]) != (len(x), *x.shape[-2:]):
        raise ValueError(
            f"The state is for {len(voltage)} samples of {_size(voltage)}, got {len(x)} of {_size(x)}; "
            "make one with initial_state(batch_size)."
        )


def _check_frames(x: Tensor, config: ModelConfig, weight: Tensor) -> None:
    if x.numel() == 0:
        raise ValueError(f"Expected at least one sample and one step, got an empty batch {list(x.shape)}.")
    if x.shape[-3] != config.in_channels:
        raise ValueError(f"Expected {config.in_channels} channels, got {x.shape[-3]} in {list(x.shape)}.")
    if config.image_size is None:
        check_divisible((x.shape[-2], x.shape[-1]), config.patch_size)
    elif (x.shape[-2], x.shape[-1]) != config.image_size:
        height, width = config.image_size
        raise ValueError(
            f"Expected images of {height}×{width}, got {_size(x)}; resize them, or make the model with "
            f"image_size=({x.shape[-2]}, {x.shape[-1]})."
        )
    if x.device != weight.device:
        raise ValueError(f"Expected the input on {weight.device}, where the model is, got {x.device}.")
    autocast = torch.is_autocast_enabled(x.device.type)
    if x.dtype != weight.dtype and not (autocast and x.dtype.is_floating_point):
        raise ValueError(
            f"Expected {weight.dtype}, the model's dtype, got {x.dtype}; convert with x.to({weight.dtype})."
        )
    # A compiled graph cannot branch on data; there the caller vouches for finite inputs.
    if not torch.compiler.is_compiling() and not torch.isfinite(x).all():
        kind = "NaN" if torch.isnan(x).any() else "infinity"
        raise ValueError(f"Expected finite inputs, got {kind}; check the data and its normalisation.")


def _size(x: Tensor) -> str:
    return f"{x.shape[-2]}×{x.shape[-1]}"
