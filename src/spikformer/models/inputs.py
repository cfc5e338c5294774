"""Checks of a model's inputs: each error says what was expected, what was given and what to do.

Shapes, dtype and device are checked in every call. Values are not, for a device would have to be waited for: loaders,
`predict` and the engine check them where data enters, and `finite_checks()` makes a model do it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from spikformer.config import NetworkConfig, check_frame, check_frames
from spikformer.errors import FieldError, InputError
from spikformer.layers.time import StreamState


def check_input(x: Tensor, config: NetworkConfig, weight: Tensor) -> None:
    """Static images [B, C, H, W] or event frames [T, B, C, H, W], of the model's size and dtype."""
    if not isinstance(x, Tensor):
        raise InputError("type", "a torch.Tensor", type(x).__name__, "convert it with torch.as_tensor")
    if not torch.jit.is_tracing():
        check_frames(x.shape, config)
    else:
        with warnings.catch_warnings(action="ignore", category=torch.jit.TracerWarning):  # a trace is for one size
            check_frames(x.shape, config)
    _check_values(x, weight)


def check_stream(x: Tensor, config: NetworkConfig, weight: Tensor, training: bool) -> None:
    """One frame [B, C, H, W]."""
    if config.mixes_samples:
        raise FieldError(
            "batch_leak",
            f"step cannot run {config.title} as configured: the samples of its batches depend on each other; build it "
            "with batch_leak=False.",
        )
    if training:
        raise FieldError(
            "training",
            "step needs a model in eval mode: batch statistics of one step are not those of all; call eval().",
        )
    if not isinstance(x, Tensor) or x.ndim != 4:
        given = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise FieldError("dimensions", f"step expects one frame [B, C, H, W], got {given}.")
    check_frame(x.shape, config)
    _check_values(x, weight)


def check_state(state: StreamState, batch_size: int) -> None:
    """A state of as many samples as the frame; neurons compare the shapes of their voltages."""
    if not isinstance(state, StreamState):
        raise FieldError(
            "state", f"step expects a StreamState, got {type(state).__name__}; make one with initial_state."
        )
    if state.batch_size != batch_size:
        raise FieldError(
            "state",
            f"The state is for {state.batch_size} samples, the frame has {batch_size}; "
            "make one with initial_state(batch_size).",
        )


def _check_values(x: Tensor, weight: Tensor) -> None:
    if x.device != weight.device:
        raise InputError("device", f"the input on {weight.device}, where the model is", x.device, "use x.to()")
    if x.dtype != weight.dtype and not _autocast_takes(x):
        scale = "" if x.dtype.is_floating_point else " and scale it as in training"
        fix = f"convert with x.to({weight.dtype}){scale}"
        raise InputError("dtype", f"{weight.dtype}, the model's dtype", x.dtype, fix)
    if _finite_checks:
        check_finite(x)


_finite_checks = False


@contextmanager
def finite_checks() -> Iterator[None]:
    """Let every model in the process check its inputs for NaN and infinity, which waits for the device each time."""
    global _finite_checks
    before, _finite_checks = _finite_checks, True
    try:
        yield
    finally:
        _finite_checks = before


def check_finite(x: Tensor) -> None:
    """Raise ValueError where an input holds NaN or infinity."""
    if not torch.isfinite(x).all():
        kind = "NaN" if torch.isnan(x).any() else "infinity"
        raise InputError("values", "finite inputs", kind, "check the data and its normalisation")


def _autocast_takes(x: Tensor) -> bool:
    enabled = torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type)
    return enabled and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
