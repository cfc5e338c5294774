"""Weights on disk: one safetensors file, the config in its metadata. Never pickle.

A file is written beside its place and moved there when it is whole; it is checked before a model is made of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from spikformer.config import ModelConfig
from spikformer.models.spikformer import Spikformer

FORMAT = "spikformer"
FORMAT_VERSION = 1


def save(model: Spikformer, path: str | os.PathLike[str]) -> None:
    """Write a model's weights and config; a file already there is replaced only by a whole one."""
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "config": json.dumps(model.config.to_dict()),
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
    try:
        config = ModelConfig.from_dict(json.loads(metadata["config"]))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} holds no readable config ({error}); save the model again.") from None
    except ValueError as error:
        raise ValueError(f"{path} holds a config that this release refuses: {error}") from None
    return assemble(config, tensors, str(path))


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
    for name, tensor in expected.items():
        if tensors[name].shape != tensor.shape:
            raise ValueError(
                f"{source}: {name} should be {list(tensor.shape)}, is {list(tensors[name].shape)}; "
                "it does not fit its config."
            )
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of any safetensors file; a missing or damaged one is said in a sentence."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is truncated or not a safetensors file ({error}).") from None


def write_atomically(path: Path, content: bytes) -> None:
    """All of it or nothing: a reader never meets half a file, a failure leaves no trace."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into; create it first.")
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _listed(names: set[str]) -> str:
    first, *rest = sorted(names)
    return first if not rest else f"{first} and {len(rest)} more tensors"
