"""An engine on disk: one safetensors file, config and neurons in it, read without torch and checked before it is used.

Weights are kept as the plan has them, not as one instruction set wants them: a file runs on every machine.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from spikformer.card import ModelCard, read_card
from spikformer.config import ModelConfig
from spikformer.engine.plan import Block, Layer, Neuron, Plan
from spikformer.tensorfile import TensorFile, open_tensors, with_code, write_tensors
from spikformer.vocabulary import shown

FORMAT = "spikformer-engine"
FORMAT_VERSION = 1


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """One file, replaced as a whole; the same plan gives the same bytes."""
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
        "card": json.dumps(plan.card.to_dict()),
    }
    write_tensors(Path(path), {name: with_code(array) for name, array in tensors.items()}, metadata)


def is_engine_file(path: Path) -> bool:
    """Whether a file says of itself that it holds an engine."""
    try:
        with open_tensors(path) as file:
            return file.metadata.get("format") == FORMAT
    except (OSError, ValueError):
        return False


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """The plan in a file. Takes the memory of the network its config describes, and never more than the file has."""
    path = Path(path)
    with open_tensors(path) as file:
        file.check_kind(FORMAT, FORMAT_VERSION)
        fields = file.json("config", dict)
        try:
            config = ModelConfig.from_dict(fields)
            return _Reader(config, file).plan(read_card(file.metadata, config))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {error} Compile the weights again.") from None


class _Reader:
    """Takes tensors out by name; each must be there, of the shape that the config asks for, and finite."""

    def __init__(self, config: ModelConfig, file: TensorFile) -> None:
        self.config, self.file, self.left = config, file, set(file.entries)

    def plan(self, card: ModelCard) -> Plan:
        config = self.config
        if config.depth + len(config.pool_stages) > len(self.left):  # a forged depth must not keep us busy
            raise ValueError(f"{len(self.left)} tensors are too few for {config.depth} blocks.")
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
            card,
        )
        if self.left:
            raise ValueError(f"it holds {shown(min(self.left))}, which does not fit its config.")
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
        return Neuron(*self._take(f"{name}.neuron", (4,), np.float64).tolist())

    def _take(self, name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        if name not in self.left:
            raise ValueError(f"it lacks {name}.")
        self.left.remove(name)
        entry, wanted = self.file.entries[name], with_code(np.empty(0, dtype))[0]
        if entry.shape != shape or entry.dtype != wanted:
            raise ValueError(f"{name} should be {wanted} {list(shape)}, is {entry.dtype} {list(entry.shape)}.")
        return self.file.read_numpy(name)
