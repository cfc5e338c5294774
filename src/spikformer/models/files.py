"""Weights on disk: one safetensors file, the config in its metadata. Never pickle.

A file is written beside its place and moved there when it is whole. Before a model is made of one, names, shapes and
dtypes are compared with its config: loading takes the memory of that model, and never more than the file has bytes,
besides modules for as many tensors as it lists.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from spikformer.card import ModelCard, read_card
from spikformer.config import NetworkConfig
from spikformer.errors import FieldError, FileError, field_of, shown
from spikformer.models.base import SpikingNetwork
from spikformer.models.inspection import check_as_configured, unwrap
from spikformer.models.registry import architecture_of, build_model, get_architecture
from spikformer.tensorfile import WEIGHTS_FORMAT, WEIGHTS_VERSION, TensorFile, open_tensors, write_tensors
from spikformer.weights import find_weights

_MOST_TENSORS = 20_000  # the largest network that is known here has 1,000; modules take 4 KB for each
_NOT_STORED = 1_000  # buffers of a network that its state dict leaves out
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}


def save(model: nn.Module, path: str | os.PathLike[str], card: ModelCard | None = None) -> None:
    """Write a model's weights, its config and its card, or another card; a file is replaced only by a complete one.

    The same model gives the same bytes. A model inside torch.compile, AveragedModel or a data-parallel wrapper is saved
    as itself; parts that its config does not build, and weights that are NaN, raise ValueError, because `load` could
    not build them either.
    """
    model = unwrap(model, "save")
    check_as_configured(model, "save")
    card = model.card if card is None else card
    card.check_fits(model.config)
    tensors = model.state_dict()
    _unfilled(model.config, tensors, "The model")
    _check_values(tensors, "The model")
    metadata = {
        "format": WEIGHTS_FORMAT,
        "format_version": str(WEIGHTS_VERSION),
        "architecture": architecture_of(model.config).name,
        "config": json.dumps(model.config.to_dict()),
        "card": json.dumps(card.to_dict()),
    }
    write_safetensors(Path(path), tensors, metadata)


def load(
    name_or_path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    time_steps: int | None = None,
) -> SpikingNetwork:
    """The model in a file written by `save`, in eval mode; its dtype and time steps are the file's unless given.

    A file in half precision is loaded as float32, the dtype of images, unless `dtype` says otherwise. A name without
    separator or suffix is a network that comes with the package, see `sf.list_weights`. A file of an architecture from
    outside the package loads after its `register_architecture`.
    """
    path = find_weights(name_or_path)
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise FieldError("dtype", f"dtype must be a floating-point type, as torch.float32, got {shown(dtype)}.")
    with open_tensors(path) as file:
        file.check_kind(WEIGHTS_FORMAT, WEIGHTS_VERSION)
        fields = file.json("config", dict)
        try:
            architecture = get_architecture(file.metadata.get("architecture", "spikformer"))
            config = architecture.config_type.from_dict(fields)
        except ValueError as error:
            problem = f"holds a config that this release cannot build: {error}"
            raise FileError(path, problem, "unsupported", at=field_of(error)) from None
        try:
            card = read_card(file.metadata, config)
        except ValueError as error:
            raise FileError(path, f"is damaged: {error} Write it again.", at=field_of(error)) from None
        if time_steps is not None:
            config, card = config.override(time_steps=time_steps), card.with_time_steps(time_steps)
            card.check_fits(config)
        model = _unfilled(config, {name: read_tensor(file, name, "meta") for name in file.entries}, str(path))
        model = _filled(model, {name: read_tensor(file, name) for name in file.entries}, str(path))
    model.card = card
    if dtype is None and next(model.parameters()).dtype in (torch.float16, torch.bfloat16):
        dtype = torch.float32
    return model.to(device=device, dtype=dtype)


def replace_card(path: str | os.PathLike[str], card: ModelCard) -> None:
    """Write another card into a file written by `save`, which is replaced as a whole; its tensors keep their bytes."""
    path = Path(path)
    card.check_fits(load(path).config)
    metadata, tensors = read_safetensors(path)
    metadata.pop("about", None)  # what earlier versions had instead
    write_safetensors(path, tensors, metadata | {"card": json.dumps(card.to_dict())})


def assemble(config: NetworkConfig, tensors: Mapping[str, Tensor], source: str) -> SpikingNetwork:
    """A model in eval mode that owns exactly these tensors; any that is missing, extra or misshapen is named."""
    return _filled(_unfilled(config, tensors, source), tensors, source)


def _unfilled(config: NetworkConfig, tensors: Mapping[str, Tensor], source: str) -> SpikingNetwork:
    """A model without memory, which tensors of these shapes and dtypes fit."""
    if len(tensors) > _MOST_TENSORS:
        problem = f"holds {len(tensors)} tensors, expected at most {_MOST_TENSORS}."
        raise FileError(source, problem, "too_large")
    # Checked first, so that a forged depth cannot make us build for ever.
    if config.fewest_tensors > len(tensors):
        raise FileError(
            source,
            f"holds {len(tensors)} tensors, fewer than the {config.fewest_tensors} or more of its config.",
            "unfit",
        )
    with torch.device("meta"), _at_most(len(tensors) + _NOT_STORED, source):
        model = build_model(config)
    expected = model.state_dict()
    for problem, names in (
        ("lacks", expected.keys() - tensors.keys()),
        ("holds unknown", tensors.keys() - expected.keys()),
    ):
        if names:
            raise FileError(source, f"{problem} {_listed(names)}; it does not fit its config.", "unfit", at=min(names))
    first = next(iter(expected))
    dtype = tensors[first].dtype
    if not dtype.is_floating_point:
        raise FileError(source, f": {first} should be of a floating-point type, is {dtype}.", at=first)
    for name, like in expected.items():
        shape, wanted = tensors[name].shape, dtype if like.is_floating_point() else like.dtype
        if shape != like.shape:
            raise FileError(
                source,
                f": {name} should be {list(like.shape)}, is {list(shape)}; it does not fit its config.",
                "unfit",
                at=name,
            )
        if tensors[name].dtype != wanted:
            raise FileError(
                source, f": {name} should be {wanted}, as its neighbours, is {tensors[name].dtype}.", at=name
            )
    return model


@contextmanager
def _at_most(count: int, source: str) -> Iterator[None]:
    """Raise FileError as soon as the modules that this thread builds have more parameters and buffers than that.

    `fewest_tensors` is far below what a block really has: 20,000 blocks for as many names would take gigabytes.
    """
    left, thread = count, threading.get_ident()

    def use_one(*_: object) -> None:
        nonlocal left
        left -= threading.get_ident() == thread
        if left < 0:
            raise FileError(source, "holds fewer tensors than its config; it does not fit it.", "unfit")

    hooks = register_module_parameter_registration_hook, register_module_buffer_registration_hook
    handles = [register(use_one) for register in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _check_values(tensors: Mapping[str, Tensor], source: str) -> None:
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise FileError(
                source, f": {name} holds NaN or infinity; its training went wrong before it was saved.", at=name
            )
        if name.endswith("running_var") and (tensor < 0).any():
            raise FileError(source, f": {name} holds a variance below 0; it is damaged.", at=name)


def _filled(model: SpikingNetwork, tensors: Mapping[str, Tensor], source: str) -> SpikingNetwork:
    _check_values(tensors, source)
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def write_safetensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors of any device atomically; those on the CPU are not copied."""
    arrays = {}
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        array = own.view(torch.int16) if own.dtype == torch.bfloat16 else own  # NumPy has no bfloat16
        arrays[name] = (_CODES[own.dtype], array.numpy())
    write_tensors(path, arrays, metadata)


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of any safetensors file; a missing or damaged one is an error that names it."""
    with open_tensors(path) as file:
        return file.metadata, {name: read_tensor(file, name) for name in file.entries}


def read_tensor(file: TensorFile, name: str, device: str = "cpu") -> Tensor:
    """A tensor in memory of its own, aligned as PyTorch's are; on `meta` its shape and dtype alone."""
    entry = file.entries[name]
    if entry.dtype not in _DTYPES:
        raise FileError(
            file.path,
            f": {shown(name)} is {entry.dtype}, expected one of {', '.join(_DTYPES)}.",
            "unsupported",
            at=name,
        )
    try:
        tensor = torch.empty(entry.shape, dtype=_DTYPES[entry.dtype], device=device)
    except RuntimeError:  # a sparse file may be larger than memory
        raise FileError(
            file.path, f": {shown(name)} {list(entry.shape)} does not fit into memory.", "too_large", at=name
        ) from None
    if device == "cpu":
        file.read_into(name, tensor.view(torch.int16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy())
    return tensor


def _listed(names: set[str]) -> str:
    first, *rest = sorted(names)
    named = shown(first).strip("'")  # escaped, without the quotes
    return named if not rest else f"{named} and {len(rest)} more tensors"
