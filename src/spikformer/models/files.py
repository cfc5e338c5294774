"""Weights on disk: one safetensors file, the config in its metadata. Never pickle.

A file is written beside its place and moved there when it is whole; it is checked before a model is made of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.disk import check_is_file, write_atomically
from spikformer.models.spikformer import Spikformer

FORMAT = "spikformer"
FORMAT_VERSION = 1


def save(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Write a model's weights, its config and what it is about; a file there is replaced only by a whole one.

    A model inside torch.compile or a data-parallel wrapper is saved as itself.
    """
    while not isinstance(model, Spikformer):
        inner = getattr(model, "_orig_mod", getattr(model, "module", None))
        if inner is None:
            raise ValueError(f"save expects a Spikformer, got {type(model).__name__}.")
        model = inner
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "config": json.dumps(model.config.to_dict()),
        "about": json.dumps(model.about),
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    write_atomically(Path(path), serialise(tensors, metadata))


def load(path: str | os.PathLike[str]) -> Spikformer:
    """The model in a file written by `save`, in eval mode, on the CPU, with the dtype it was saved in."""
    path = Path(path)
    metadata, tensors = read_safetensors(path)
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{path} is a safetensors file, but not one of ours; `spikformer import` reads the authors' weights."
        )
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version!r}, this release reads up to {FORMAT_VERSION}; update spikformer."
        )
    fields = _read_json(metadata, "config", path)
    about = _read_json(metadata, "about", path) if "about" in metadata else {}
    try:
        config = ModelConfig.from_dict(fields)
    except ValueError as error:
        raise ValueError(f"{path} holds a config that this release refuses: {error}") from None
    model = assemble(config, tensors, str(path))
    model.about = about
    return model


def _read_json(metadata: Mapping[str, str], key: str, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(metadata[key])
    except (KeyError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds no readable {key}; it is damaged, save the model again.")
    return value


def assemble(config: ModelConfig, tensors: Mapping[str, Tensor], source: str) -> Spikformer:
    """A model in eval mode that owns exactly these tensors; any that is missing, extra or misshapen is named."""
    # Checked first, so that a forged depth cannot make us build for ever.
    if config.depth + len(config.pool_stages) > len(tensors):
        raise ValueError(f"{source} holds {len(tensors)} tensors, too few for {config.depth} blocks.")
    with torch.device("meta"):
        model = Spikformer(config)
    expected = model.state_dict()
    for problem, names in (
        ("lacks", expected.keys() - tensors.keys()),
        ("holds unknown", tensors.keys() - expected.keys()),
    ):
        if names:
            raise ValueError(f"{source} {problem} {_listed(names)}; it does not fit its config.")
    dtype = tensors["head.weight"].dtype
    if not dtype.is_floating_point:
        raise ValueError(f"{source}: head.weight should be of a floating-point type, is {dtype}.")
    for name, like in expected.items():
        shape, wanted = tensors[name].shape, dtype if like.is_floating_point() else like.dtype
        if shape != like.shape:
            raise ValueError(
                f"{source}: {name} should be {list(like.shape)}, is {list(shape)}; it does not fit its config."
            )
        if tensors[name].dtype != wanted:
            raise ValueError(f"{source}: {name} should be {wanted}, as its neighbours, is {tensors[name].dtype}.")
        if not torch.isfinite(tensors[name]).all():
            raise ValueError(f"{source}: {name} holds NaN or infinity; its training went wrong before it was saved.")
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of any safetensors file; a missing or damaged one is said in a sentence."""
    check_is_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ValueError(
            f"{path} is truncated or not a safetensors file ({error}); `spikformer import` reads the authors' files."
        ) from None


def _listed(names: set[str]) -> str:
    first, *rest = sorted(names)
    return first if not rest else f"{first} and {len(rest)} more tensors"
