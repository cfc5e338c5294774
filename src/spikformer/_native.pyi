"""The native core (kernels/binding.cpp): arrays are [time_steps, size] or [size], float32 or float64."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

def lif_forward(
    current: Array,
    initial: Array | None,
    spikes: Array,
    membrane: Array | None,
    voltage: Array,
    gain: float,
    leak: float,
    v_threshold: float,
    v_reset: float,
) -> None: ...
def lif_backward(
    grad_spikes: Array,
    grad_voltage: Array | None,
    membrane: Array,
    initial: Array | None,
    grad_current: Array,
    grad_initial: Array | None,
    gain: float,
    leak: float,
    v_threshold: float,
    v_reset: float,
    surrogate: str,
    alpha: float,
) -> float: ...
def build_info() -> dict[str, Any]: ...
