"""An engine on disk: one safetensors file, config and neurons in it, read without torch and checked before it is used.

Weights are kept as the plan has them, not as one instruction set wants them: a file runs on every machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialise

from spikformer.config import ModelConfig
from spikformer.disk import check_is_file, write_atomically
from spikformer.engine.plan import Block, Layer, Neuron, Plan

FORMAT = "spikformer-engine"
FORMAT_VERSION = 1


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    tensors = {"head.weights": plan.head_weights, "head.bias": plan.head_bias}
    for layer in plan.layers():
        tensors |= {f"{layer.name}.weights": layer.weights, f"{layer.name}.bias": layer.bias}
        tensors[f"{layer.name}.neuron"] = np.array(layer.neuron.as_tuple())
    for block in plan.blocks:
        tensors[f"{block.name}.neuron"] = np.array(block.mixed.as_tuple())
        tensors[f"{block.name}.scale"] = np.array([block.scale])
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "config": json.dumps(plan.config.to_dict()),
        "about": json.dumps(plan.about),
    }
    write_atomically(Path(path), serialise(tensors, metadata))


def is_engine_file(path: Path) -> bool:
    """Whether a file says of itself that it holds an engine."""
    try:
        with safe_open(path, framework="numpy") as file:
            return (file.metadata() or {}).get("format") == FORMAT
    except (OSError, SafetensorError):
        return False


def read_plan(path: str | os.PathLike[str]) -> Plan:
    path = Path(path)
    metadata, tensors = _read(path)
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} holds no engine; `spikformer compile` makes one of trained weights.")
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{path} has engine format {version!r}, this release reads up to {FORMAT_VERSION}; update spikformer."
        )
    try:
        config = ModelConfig.from_dict(_object(metadata, "config"))
        return _Reader(config, tensors).plan(_object(metadata, "about"))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error} Compile the weights again.") from None


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    check_is_file(path)
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, TypeError, ValueError) as error:  # the last two: a dtype that NumPy does not have
        raise ValueError(f"{path} is truncated or no engine file ({error}); compile the weights again.") from None


def _object(metadata: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        value = json.loads(metadata[key])
    except (KeyError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"it holds no readable {key}.")
    return value


class _Reader:
    """Takes tensors out by name; each must be there, of the shape that the config asks for, and finite."""

    def __init__(self, config: ModelConfig, tensors: dict[str, np.ndarray]) -> None:
        self.config, self.tensors = config, tensors

    def plan(self, about: dict[str, Any]) -> Plan:
        config = self.config
        if config.depth + len(config.pool_stages) > len(self.tensors):  # a forged depth must not keep us busy
            raise ValueError(f"{len(self.tensors)} tensors are too few for {config.depth} blocks.")
        dim, widths = config.embed_dim, (config.in_channels, *config.stage_channels)
        plan = Plan(
            config,
            tuple(
                self._layer(f"stem.stages.{index}", widths[index + 1], 9, widths[index])
                for index in range(len(config.pool_stages))
            ),
            self._layer("stem.position", dim, 9, dim),
            tuple(self._block(f"blocks.{index}") for index in range(config.depth)),
            self._take("head.weights", (config.num_classes, dim), np.float32),
            self._take("head.bias", (config.num_classes,), np.float32),
            about,
        )
        if self.tensors:
            raise ValueError(f"it holds {min(self.tensors)}, which does not fit its config.")
        return plan

    def _block(self, name: str) -> Block:
        dim, hidden = self.config.embed_dim, self.config.mlp_dim
        mixes = self.config.attention != "none"
        return Block(
            name=f"{name}.attention",
            query=self._layer(f"{name}.attention.query", dim, 1, dim) if mixes else None,
            key=self._layer(f"{name}.attention.key", dim, 1, dim) if mixes else None,
            value=self._layer(f"{name}.attention.value", dim, 1, dim),
            scale=float(self._take(f"{name}.attention.scale", (1,), np.float64)[0]),
            mixed=self._neuron(f"{name}.attention"),
            projection=self._layer(f"{name}.attention.projection", dim, 1, dim),
            hidden=self._layer(f"{name}.mlp.hidden", hidden, 1, dim),
            output=self._layer(f"{name}.mlp.output", dim, 1, hidden),
        )

    def _layer(self, name: str, outputs: int, neighbours: int, inputs: int) -> Layer:
        weights = self._take(f"{name}.weights", (outputs, neighbours, inputs), np.float32)
        return Layer(name, weights, self._take(f"{name}.bias", (outputs,), np.float32), self._neuron(name))

    def _neuron(self, name: str) -> Neuron:
        constants = self._take(f"{name}.neuron", (4,), np.float64)
        with np.errstate(over="ignore", under="ignore"):
            _, _, v_threshold, v_reset = constants.astype(np.float32)  # as the engine computes
        if v_threshold <= v_reset:
            raise ValueError(f"the neuron of {name} has its threshold at or below its rest.")
        return Neuron(*constants.tolist())

    def _take(self, name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        if name not in self.tensors:
            raise ValueError(f"it lacks {name}.")
        array = self.tensors.pop(name)
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"{name} should be {np.dtype(dtype)} {list(shape)}, is {array.dtype} {list(array.shape)}.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinity.")
        return array
