"""What a model says to an input it cannot take: what was expected, what was given, what to do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from spikformer.config import ModelConfig
from spikformer.frames import check_frame, check_frames
from spikformer.neurons.backend import is_observed


def check_input(x: Tensor, config: ModelConfig, weight: Tensor) -> None:
    """Still images [B, C, H, W] or event frames [T, B, C, H, W], of the model's size and dtype, finite."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Expected a torch.Tensor, got {type(x).__name__}; convert it with torch.as_tensor.")
    if not torch.jit.is_tracing():
        check_frames(x.shape, config)
    else:
        with warnings.catch_warnings(action="ignore", category=torch.jit.TracerWarning):  # a trace is for one size
            check_frames(x.shape, config)
    _check_values(x, weight)


def check_stream(x: Tensor, config: ModelConfig, weight: Tensor, training: bool) -> None:
    """One frame [B, C, H, W]."""
    if training:
        raise ValueError(
            "step needs a model in eval mode: batch statistics of one step are not those of all; call eval()."
        )
    if not isinstance(x, Tensor) or x.ndim != 4:
        given = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"step expects one frame [B, C, H, W], got {given}.")
    check_frame(x.shape, config)
    _check_values(x, weight)


def check_state(state: Any, expected: Any) -> None:
    """A tree of voltages of the same form as the expected one."""
    given, wanted = list(_leaves(state)), list(_leaves(expected))
    if [_form(leaf) for leaf in given] != [_form(leaf) for leaf in wanted]:
        first = next((pair for pair in zip(given, wanted, strict=False) if _form(pair[0]) != _form(pair[1])), None)
        found = (
            f"{_form(first[0])} where {_form(first[1])} belongs" if first else f"{len(given)} of {len(wanted)} voltages"
        )
        raise ValueError(
            f"The state does not fit this model and frame: it has {found}; make one with initial_state(batch_size)."
        )


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple):
        for branch in tree:
            yield from _leaves(branch)
    else:
        yield tree


def _form(leaf: Any) -> str:
    return f"{leaf.dtype} {list(leaf.shape)}" if isinstance(leaf, Tensor) else type(leaf).__name__


def _check_values(x: Tensor, weight: Tensor) -> None:
    if x.device != weight.device:
        raise ValueError(f"Expected the input on {weight.device}, where the model is, got {x.device}; use x.to().")
    if x.dtype != weight.dtype and not _autocast_takes(x):
        scale = "" if x.dtype.is_floating_point else " and scale it as in training"
        raise ValueError(
            f"Expected {weight.dtype}, the model's dtype, got {x.dtype}; convert with x.to({weight.dtype}){scale}."
        )
    # Neither a graph that is being made nor a tensor without data can be asked for its values.
    hidden = x.is_meta or torch.compiler.is_compiling() or is_observed()
    if type(x) is Tensor and not hidden and not torch.isfinite(x).all():
        kind = "NaN" if torch.isnan(x).any() else "infinity"
        raise ValueError(f"Expected finite inputs, got {kind}; check the data and its normalisation.")


def _autocast_takes(x: Tensor) -> bool:
    enabled = torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type)
    return enabled and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
