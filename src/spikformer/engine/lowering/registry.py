"""Lowerings by the name of the architecture they know.

A lowering works on NumPy arrays under the names of the model's state dict. Register one for your own architecture:

    @register_lowering("my_network", MyConfig)
    def lower_my_network(config: MyConfig, arrays: Arrays) -> Program: ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spikformer.config import NetworkConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.program import Program
from spikformer.messages import shown

Lower = Callable[[Any, Arrays], Program]


@dataclass(frozen=True)
class Lowering:
    """How configs of one type, with their arrays, become programs."""

    config_type: type[NetworkConfig]
    lower: Lower


_LOWERINGS: dict[str, Lowering] = {}


def register_lowering(architecture: str, config_type: type[NetworkConfig]) -> Callable[[Lower], Lower]:
    def register(lower: Lower) -> Lower:
        _LOWERINGS[architecture] = Lowering(config_type, lower)
        return lower

    return register


def config_of(architecture: str, fields: Mapping[str, Any]) -> NetworkConfig:
    """The config that a file holds of an architecture."""
    return _lowering(architecture).config_type.from_dict(fields)


def architecture_of(config: NetworkConfig) -> str:
    """The name of the architecture whose config this is."""
    for name, lowering in _LOWERINGS.items():
        if type(config) is lowering.config_type:
            return name
    raise ValueError(f"The engine has no lowering for a {type(config).__name__}; it runs {', '.join(_LOWERINGS)}.")


def lower(config: NetworkConfig, arrays: Arrays) -> Program:
    """The program of a trained network; an array that no op reads raises ValueError."""
    program = _lowering(architecture_of(config)).lower(config, arrays)
    arrays.check_used()
    return program


def _lowering(architecture: str) -> Lowering:
    if architecture not in _LOWERINGS:
        raise ValueError(f"The engine cannot run {shown(architecture)} networks; it runs {', '.join(_LOWERINGS)}.")
    return _LOWERINGS[architecture]
