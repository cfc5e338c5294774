"""The file that a run resumes from as if it had never stopped: safetensors, written whole or not at all.

Tensors: weights and buffers of the model, its average if there is one, and the optimiser's moments, each under its
parameter's name; which moments there are, `optimisers` says. Metadata, as JSON: the recipe, where the run was, and its
metrics so far. Order and augmentation of samples follow from seed, epoch and batch: there is no random state to keep.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spikformer.errors import FileError
from spikformer.models import SpikingNetwork
from spikformer.models.files import read_tensor, write_safetensors
from spikformer.tensorfile import STATE_FORMAT, open_tensors
from spikformer.training.optim import state_forms
from spikformer.training.progress import Progress

FORMAT_VERSION = 1
_LARGEST_COUNT = 1 << 53  # what a float counts to


def save_state(
    path: Path,
    recipe: Mapping[str, Any],
    progress: Progress,
    model: SpikingNetwork,
    optimiser: torch.optim.Optimizer,
    average: SpikingNetwork | None,
    scaler: Mapping[str, Any] | None,
) -> None:
    """Write all of it; what was there before is replaced only by a whole file."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    if average is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in average.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"optimiser.{key}.{name}"] = value
    metadata = {
        "format": STATE_FORMAT,
        "format_version": str(FORMAT_VERSION),
        "recipe": json.dumps(recipe),
        "progress": json.dumps(asdict(progress)),
        "scaler": json.dumps(scaler),
    }
    write_safetensors(path, tensors, metadata)


@dataclass(frozen=True)
class SavedState:
    """A state that was read and checked, though not yet against a model."""

    path: Path
    recipe: dict[str, Any]
    progress: Progress
    scaler: dict[str, Any] | None
    tensors: dict[str, Tensor]

    def restore(self, model: SpikingNetwork, optimiser: torch.optim.Optimizer, average: SpikingNetwork | None) -> None:
        """Fill model, optimiser and average; ValueError for anything missing or of another shape."""
        self._fill(model, "model.")
        if average is not None:
            self._fill(average, "average.")
        parameters = dict(model.named_parameters())
        for name, kept in self._kept_by_optimiser().items():  # nothing before the first iteration, or of frozen weights
            forms = {key: (tensor.shape, tensor.dtype) for key, tensor in kept.items()}
            if name not in parameters or forms != state_forms(optimiser, parameters[name]):
                raise self._misfit()
            device = parameters[name].device
            optimiser.state[parameters[name]] = {
                key: tensor if key == "step" else tensor.to(device) for key, tensor in kept.items()
            }

    def _kept_by_optimiser(self) -> dict[str, dict[str, Tensor]]:
        """By parameter."""
        found: dict[str, dict[str, Tensor]] = {}
        for path, tensor in self.tensors.items():
            owner, _, rest = path.partition(".")
            key, _, name = rest.partition(".")
            if owner == "optimiser":
                found.setdefault(name, {})[key] = tensor
        return found

    def _misfit(self) -> FileError:
        return FileError(self.path, "does not fit the model of this recipe; start again with --overwrite.", "unfit")

    def _fill(self, model: SpikingNetwork, prefix: str) -> None:
        part = {name.removeprefix(prefix): value for name, value in self.tensors.items() if name.startswith(prefix)}
        expected = {name: (value.shape, value.dtype) for name, value in model.state_dict().items()}
        if {name: (value.shape, value.dtype) for name, value in part.items()} != expected:
            raise self._misfit()
        model.load_state_dict(part)


def load_state(path: Path) -> SavedState:
    """The state in a file that `save_state` wrote. Takes as much memory as the file has bytes."""
    with open_tensors(path) as file:
        file.check_kind(STATE_FORMAT, FORMAT_VERSION)
        recipe, scaler = file.json("recipe", dict), file.json("scaler", dict, type(None))
        progress = _read_progress(file.json("progress", dict))
        if progress is None or not _is_scaler(scaler):
            wrong = "scaler" if progress else "progress"
            raise FileError(path, f"holds no readable {wrong}; start again with --overwrite.", at=wrong)
        return SavedState(path, recipe, progress, scaler, {name: read_tensor(file, name) for name in file.entries})


def _read_progress(values: dict[str, Any]) -> Progress | None:
    """Counts and sums as numbers, and a row of numbers for every finished epoch; else None."""
    values = {"iteration" if name == "step" else name: value for name, value in values.items()}  # up to version 0.1
    if values.keys() != {field.name for field in fields(Progress)}:
        return None
    progress = Progress(**values)
    counts = (progress.epoch, progress.batch, progress.iteration, progress.num_correct, progress.num_samples)
    sums = (progress.loss_sum, progress.seconds, progress.epoch_seconds)
    if not all(_is_count(count) for count in (*counts, progress.unreadable)) or not all(map(_is_number, sums)):
        return None
    best: tuple[Any, Any] = (progress.best_epoch, progress.best_accuracy)
    if best != (None, None) and not (_is_count(best[0]) and 1 <= best[0] <= progress.epoch and _is_number(best[1])):
        return None
    return progress if _is_history(progress.history, progress.epoch) else None


def _is_history(rows: Any, epochs: int) -> bool:
    return (
        isinstance(rows, list)
        and len(rows) == epochs
        and all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows)
        and all("train_loss" in row and row.get("epoch") == number for number, row in enumerate(rows, 1))
        and all(_is_number(value, finite=False) for row in rows for value in row.values())
    )


def _is_scaler(values: dict[str, Any] | None) -> bool:
    """Whether PyTorch's loss scaler would take them; None is for runs without one."""
    return values is None or (
        values.keys() == torch.amp.GradScaler("cpu").state_dict().keys()
        and all(_is_number(value, finite=False) and value >= 0 for value in values.values())
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_COUNT


def _is_number(value: Any, *, finite: bool = True) -> bool:
    if type(value) is int:
        return abs(value) <= _LARGEST_COUNT
    return type(value) is float and (math.isfinite(value) or not finite)
