"""Lowerings by the name of the architecture they know, and the models and weights files they are applied to.

A lowering works on NumPy arrays under the names of the model's state dict. Register one for your own architecture:

    @register_lowering("my_network", MyConfig)
    def lower_my_network(config: MyConfig, arrays: Arrays) -> Program: ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spikformer.card import read_card
from spikformer.config import NetworkConfig
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.program import Compiled, Program
from spikformer.errors import FieldError, FileError, UnknownNameError, field_of
from spikformer.tensorfile import WEIGHTS_FORMAT, WEIGHTS_VERSION, TensorFile, open_tensors
from spikformer.weights import find_weights

if TYPE_CHECKING:
    from torch import Tensor

    from spikformer.models import SpikingNetwork

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


def architecture_name(config: NetworkConfig) -> str:
    """The name of the architecture whose config this is."""
    for name, lowering in _LOWERINGS.items():
        if type(config) is lowering.config_type:
            return name
    raise FieldError(
        "config", f"The engine has no lowering for a {type(config).__name__}; it runs {', '.join(_LOWERINGS)}."
    )


def lower(config: NetworkConfig, arrays: Arrays) -> Program:
    """The program of a trained network; an array that no op reads raises ValueError."""
    program = _lowering(architecture_name(config)).lower(config, arrays)
    arrays.check_used()
    return program


def _lowering(architecture: str) -> Lowering:
    if architecture not in _LOWERINGS:
        raise UnknownNameError("lowering", architecture, _LOWERINGS, f"the engine runs {', '.join(_LOWERINGS)}.")
    return _LOWERINGS[architecture]


def from_model(model: SpikingNetwork) -> Compiled:
    """The program of a model in eval mode; parts that its config does not build raise ValueError."""
    from spikformer.models.inspection import check_as_configured, unwrap

    model = unwrap(model, "compile_engine")
    if model.training:
        raise FieldError("training", "The engine compiles a model for inference; call model.eval() first.")
    check_as_configured(model, "compile_engine")
    arrays = {name: _as_array(tensor) for name, tensor in model.state_dict().items()}
    return Compiled(lower(model.config, Arrays(arrays)), model.config, model.card)


def _as_array(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    return (tensor.float() if "float16" in str(tensor.dtype) else tensor).numpy()  # or bfloat16, which NumPy lacks


def from_weights(name_or_path: str | os.PathLike[str]) -> Compiled:
    """The program of what `sf.load` takes: the same bits as of the model that it makes of it."""
    path = find_weights(name_or_path)
    with open_tensors(path) as file:
        file.check_kind(WEIGHTS_FORMAT, WEIGHTS_VERSION)
        fields = file.json("config", dict)
        try:
            config = config_of(file.metadata.get("architecture", "spikformer"), fields)
            arrays = Arrays({name: _read(file, name) for name in file.entries})
            return Compiled(lower(config, arrays), config, read_card(file.metadata, config))
        except ValueError as error:
            raise FileError(path, f"cannot become an engine: {error}", "unfit", at=field_of(error)) from None


def _read(file: TensorFile, name: str) -> np.ndarray:
    entry = file.entries[name]
    if entry.dtype == "F16":
        return file.read_numpy(name).astype(np.float32)
    if entry.dtype != "BF16":
        return file.read_numpy(name)
    halves = np.empty(entry.shape, np.uint16)  # NumPy has no bfloat16: the upper half of a float32
    file.read_into(name, halves)
    return (halves.astype(np.uint32) << 16).view(np.float32)
