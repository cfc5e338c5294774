"""An engine on disk: one safetensors file with its program, read without torch and checked before it is used.

Ops and their scalars are JSON in the metadata, their arrays are tensors. Weights are kept as the program has them, not
as one instruction set needs them: a file runs on every machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from spikformer.card import read_card
from spikformer.config import NetworkConfig
from spikformer.engine.lowering import architecture_name, config_of
from spikformer.engine.ops import OP_NAMES, OPS, NeuronConstants, Op
from spikformer.engine.program import Compiled, Program
from spikformer.errors import FieldError, FileError, field_of, shown
from spikformer.tensorfile import ENGINE_FORMAT, TensorFile, open_tensors, with_code, write_tensors
from spikformer.validation import is_integer

FORMAT_VERSION = 3
"""Since 3, convolutions have strides and pools have kernels; a file of version 2 has neither, and is read as it was."""
_OLDEST_VERSION = 2


def write_compiled(compiled: Compiled, path: str | os.PathLike[str]) -> None:
    program = compiled.program
    described = {
        "in_channels": program.in_channels,
        "time_steps": program.time_steps,
        "image_size": program.image_size,
        "patch_size": program.patch_size,
        "ops": [_describe(op) for op in program.ops],
    }
    metadata = {
        "format": ENGINE_FORMAT,
        "format_version": str(FORMAT_VERSION),
        "program": json.dumps(described),
        "architecture": "" if compiled.config is None else architecture_name(compiled.config),
        "config": json.dumps(compiled.config and compiled.config.to_dict()),
        "card": json.dumps(compiled.card.to_dict()),
        "density_threshold": json.dumps(compiled.density_threshold),
    }
    tensors = {f"{op.name}.{name}": with_code(getattr(op, name)) for op in program.ops for name in op.arrays}
    write_tensors(Path(path), tensors, metadata)


def _describe(op: Op) -> dict[str, Any]:
    described: dict[str, Any] = {"op": OP_NAMES[type(op)]}
    for each in fields(op):
        value = getattr(op, each.name)
        if each.name not in op.arrays:
            described[each.name] = value.as_tuple() if isinstance(value, NeuronConstants) else value
    return described


def is_engine_file(path: Path) -> bool:
    """Whether a file says of itself that it holds an engine."""
    try:
        with open_tensors(path) as file:
            return file.metadata.get("format") == ENGINE_FORMAT
    except (OSError, ValueError):
        return False


def read_compiled(path: str | os.PathLike[str]) -> Compiled:
    """The program in a file. Takes as much memory as the file has bytes."""
    path = Path(path)
    with open_tensors(path) as file:
        file.check_kind(ENGINE_FORMAT, FORMAT_VERSION)
        if int(file.metadata["format_version"]) < _OLDEST_VERSION:
            raise FileError(
                path,
                "was compiled by an older release, which had no programs; compile the weights again.",
                "unsupported",
            )
        described = file.json("program", dict)
        config, threshold = file.json("config", dict, type(None)), file.json("density_threshold", float, type(None))
        try:
            _program(described, _Arrays(file, read=False))  # shapes first, before any memory is taken
            program = _program(described, _Arrays(file, read=True))
            if threshold is not None and not 0 <= threshold <= 1:
                raise FieldError(
                    "density_threshold", f"its density_threshold should be from 0 to 1, is {shown(threshold)}."
                )
            architecture = file.metadata.get("architecture", "")
            card = read_card(file.metadata, program)
            return Compiled(program, _checked_config(architecture, config, program), card, threshold)
        except (ValueError, TypeError, KeyError) as error:
            problem = f"is damaged: {str(error).rstrip('.')}; compile the weights again."
            raise FileError(path, problem, at=field_of(error)) from None


def _checked_config(architecture: str, fields: dict[str, Any] | None, program: Program) -> NetworkConfig | None:
    if fields is None:
        return None
    config = config_of(architecture, fields)
    for name in ("in_channels", "num_classes", "time_steps", "image_size"):
        if getattr(config, name) != getattr(program, name):
            raise FieldError(name, f"its config has another {name} than its program.")
    return config


class _Arrays:
    """The tensors of a file, taken by name; without `read` they are zeros of the right shape that take no memory."""

    def __init__(self, file: TensorFile, *, read: bool) -> None:
        self.file, self.read, self.left = file, read, set(file.entries)

    def take(self, name: str) -> np.ndarray:
        if name not in self.left:
            raise FieldError(name, f"it lacks {shown(name)}.")
        self.left.remove(name)
        entry = self.file.entries[name]
        if entry.dtype != "F32":
            raise FieldError(name, f"{shown(name)} should be F32, is {entry.dtype}.")
        return self.file.read_numpy(name) if self.read else np.broadcast_to(np.float32(0), entry.shape)


def _program(described: dict[str, Any], arrays: _Arrays) -> Program:
    """The program; its ops check what they hold, so here only types are."""
    ops = described["ops"]
    if not isinstance(ops, list) or not all(isinstance(op, dict) for op in ops):
        raise FieldError("ops", "it holds no readable ops.")
    size = described["image_size"]
    if size is not None:
        size = tuple(_count(side) for side in size)
    if size is not None and len(size) != 2:
        raise FieldError(
            "image_size", f"its image_size should be height and width, is {shown(described['image_size'])}."
        )
    program = Program(
        ops=tuple(_op(op, arrays) for op in ops),
        in_channels=_count(described["in_channels"]),
        time_steps=_count(described["time_steps"]),
        image_size=size,
        patch_size=_count(described["patch_size"]),
    )
    if arrays.left:
        raise FieldError(min(arrays.left), f"it holds {shown(min(arrays.left))}, which no op reads.")
    return program


def _op(described: dict[str, Any], arrays: _Arrays) -> Op:
    kind = OPS.get(described.get("op", ""))
    name = described.get("name")
    if kind is None or not isinstance(name, str):
        raise ValueError(f"it holds an unknown op {shown(described.get('op'))}.")
    values: dict[str, Any] = {"name": name, "inputs": tuple(_count(number, 0) for number in described["inputs"])}
    known = {each.name: each for each in fields(kind)}
    if unknown := set(described) - {"op", *known}:
        raise ValueError(f"{shown(name)} has {shown(min(unknown))}, which its op does not have.")
    for each in known.values():
        if each.name in kind.arrays:
            values[each.name] = arrays.take(f"{name}.{each.name}")
        elif each.name in values or (each.name not in described and each.default is not MISSING):
            continue
        else:
            values[each.name] = _SCALARS[str(each.type)](described[each.name])
    return kind(**values)


def _count(value: Any, least: int = 1) -> int:
    if not is_integer(value) or not least <= value <= 10**6:
        raise ValueError(f"it holds {shown(value)} where a count belongs.")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"it holds {shown(value)} where a number belongs.")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"it holds {shown(value)} where true or false belongs.")
    return value


def _neuron(value: Any) -> NeuronConstants:
    return NeuronConstants(*(_number(constant) for constant in value))


_SCALARS: dict[str, Callable[[Any], Any]] = {"int": _count, "float": _number, "bool": _flag, "NeuronConstants": _neuron}
"""How a field that is not an array is read, by its annotation."""
