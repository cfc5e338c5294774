"""What the engine takes: NumPy arrays or tensors of floats, checked, as contiguous float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from spikformer.config import InputSize, check_frame, check_frames


def as_frames(x: Any, size: InputSize) -> np.ndarray:
    """Static images [B, C, H, W] or event frames [T, B, C, H, W]."""
    array = _as_array(x)
    check_frames(array.shape, size)
    return _as_float32(array)


def as_frame(x: Any, size: InputSize) -> np.ndarray:
    """One frame [B, C, H, W] of a stream."""
    array = _as_array(x)
    if array.ndim != 4:
        raise ValueError(f"step expects one frame [B, C, H, W], got {list(array.shape)}.")
    check_frame(array.shape, size)
    return _as_float32(array)


def _as_array(x: Any) -> np.ndarray:
    if hasattr(x, "detach"):  # a tensor, without importing torch to ask
        x = x.detach().cpu()
        x = (x.float() if x.is_floating_point() else x).numpy()  # bfloat16 has no NumPy name
    if not isinstance(x, np.ndarray):
        raise ValueError(f"Expected a NumPy array or a tensor, got {type(x).__name__}; convert it with np.asarray.")
    return x


def _as_float32(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f":
        raise ValueError(
            f"Expected floats, got {array.dtype}; scale the input as in training, then convert it with "
            "x.astype(np.float32)."
        )
    with np.errstate(over="ignore"):  # what does not fit float32 becomes infinity, and is refused as such
        frames = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(frames).all():
        kind = "NaN" if np.isnan(frames).any() else "infinity"
        raise ValueError(f"Expected finite inputs, got {kind}; check the data and its normalisation.")
    return frames
