"""Lowerings: from a config and its trained arrays to a program. The only code of the engine that knows an architecture.

A lowering works on NumPy arrays under the names of the model's state dict, so that weights files become engines without
torch. Register one for an architecture of your own:

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
    from spikformer.engine.lowering import spikformer  # noqa: F401  # registers itself

    if architecture not in _LOWERINGS:
        known = ", ".join(sorted(_LOWERINGS))
        raise ValueError(f"The engine cannot run a {architecture!r} network; it runs {known}.")
    program = _LOWERINGS[architecture](config, arrays)
    arrays.check_used()
    return program
