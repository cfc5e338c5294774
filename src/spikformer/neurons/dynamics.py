"""Dynamics: what a neuron does, but for its time constant, which may be learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from spikformer.vocabulary import Surrogate


@dataclass(frozen=True)
class Dynamics:
    """With a leak, H = V + (X − (V − V_reset)) · gain and gain = 1/τ; without one, H = V + X."""

    leaky: bool = True
    v_threshold: float = 1.0
    v_reset: float = 0.0
    surrogate: Surrogate = "sigmoid"
    alpha: float = 4.0

    def __post_init__(self) -> None:
        if self.v_reset is None:
            raise ValueError("v_reset must be a number, got None: soft reset is not supported yet.")
        if self.v_threshold <= self.v_reset:
            raise ValueError(
                f"v_threshold must be above v_reset ({self.v_reset}), got {self.v_threshold}: "
                "a neuron at rest would fire for ever."
            )
        if self.surrogate not in get_args(Surrogate):
            raise ValueError(f"surrogate must be one of {', '.join(get_args(Surrogate))}, got {self.surrogate!r}.")
        if self.alpha <= 0:
            raise ValueError(f"alpha must be above 0, got {self.alpha}.")
