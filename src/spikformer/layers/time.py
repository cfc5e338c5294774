"""The one place that merges and splits time.

Convolutions, linear layers and norms know nothing of time: they see T·B samples. Neurons see the T steps.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def merge_time(x: Tensor) -> Tensor:
    """[T, B, …] to [T·B, …]."""
    return x.flatten(0, 1)


def split_time(x: Tensor, time_steps: int) -> Tensor:
    """[T·B, …] to [T, B, …]."""
    return x.unflatten(0, (time_steps, -1))


def over_time(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply a function of samples to every step of [T, B, …] in one call."""
    return split_time(function(merge_time(x)), x.shape[0])


def repeat_over_time(x: Tensor, time_steps: int) -> Tensor:
    """One step [1, B, …] shown `time_steps` times, without a copy; several steps stay as they are."""
    return x.expand(time_steps, *[-1] * (x.ndim - 1))
