"""Lowerings by the name of the architecture they know.

A lowering works on NumPy arrays under the names of the model's state dict. Register one for your own architecture:

    @register_lowering("my_network")
    def lower(config: ModelConfig, arrays: Arrays) -> Program: ...
"""

from __future__ import annotations

from collections.abc import Callable

from spikformer.config import ModelConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.program import Program

Lowering = Callable[[ModelConfig, Arrays], Program]

_LOWERINGS: dict[str, Lowering] = {}


def register_lowering(architecture: str) -> Callable[[Lowering], Lowering]:
    def register(lowering: Lowering) -> Lowering:
        _LOWERINGS[architecture] = lowering
        return lowering

    return register


def lower(architecture: str, config: ModelConfig, arrays: Arrays) -> Program:
    """The program of a trained network; an array that no op reads raises ValueError."""
    if architecture not in _LOWERINGS:
        known = ", ".join(sorted(_LOWERINGS))
        raise ValueError(f"The engine cannot run a {architecture!r} network; it runs {known}.")
    program = _LOWERINGS[architecture](config, arrays)
    arrays.check_used()
    return program
