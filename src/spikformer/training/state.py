"""What a run needs to go on as if it had never stopped: one safetensors file, written whole or not at all.

Tensors: weights and buffers of the model, its average if there is one, and the optimiser's moments, each under its
parameter's name. Metadata, as JSON: the recipe, where the run was, and its metrics so far. Order and augmentation
of samples follow from seed, epoch and batch, so there is no random state to keep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from spikformer.disk import whole_file
from spikformer.models import Spikformer
from spikformer.models.files import read_safetensors

FORMAT = "spikformer-state"
FORMAT_VERSION = 1
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # AdamW's


@dataclass
class Progress:
    """Where a run is, and what it has seen."""

    epoch: int = 0
    """Epochs that are finished, so also the number of the present one, from 0."""
    batch: int = 0
    """Steps of the present epoch that are done."""
    step: int = 0
    """Steps in all."""
    loss_sum: float = 0.0
    num_correct: int = 0
    num_samples: int = 0
    """Of the present epoch, over all devices."""
    unreadable: int = 0
    seconds: float = 0.0
    epoch_seconds: float = 0.0
    """Spent in training steps, over all interruptions."""
    best_epoch: int | None = None
    best_accuracy: float | None = None
    """On validation."""
    history: list[dict[str, float]] = field(default_factory=list)
    """A row of metrics for every finished epoch."""

    def set_sums(self, loss_sum: float, num_correct: float, num_samples: float, unreadable: float) -> None:
        self.loss_sum, self.num_correct = float(loss_sum), int(num_correct)
        self.num_samples, self.unreadable = int(num_samples), int(unreadable)

    def finish_epoch(self, metrics: dict[str, float]) -> None:
        self.history.append(metrics)
        self.epoch, self.batch = self.epoch + 1, 0
        self.loss_sum, self.num_correct, self.num_samples, self.epoch_seconds = 0.0, 0, 0, 0.0


def save_state(
    path: Path,
    recipe: Mapping[str, Any],
    progress: Progress,
    model: Spikformer,
    optimiser: torch.optim.Optimizer,
    average: Spikformer | None,
    scaler: Mapping[str, Any] | None,
) -> None:
    """Write all of it; what was there before is replaced only by a whole file."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    if average is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in average.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"optimiser.{key}.{name}"] = value
    owned = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "recipe": json.dumps(recipe),
        "progress": json.dumps(asdict(progress)),
        "scaler": json.dumps(scaler),
    }
    with whole_file(path) as half:
        try:
            save_file(owned, half, metadata)
        except SafetensorError as error:  # a full disk, in safetensors' words
            raise OSError(str(error)) from None


@dataclass(frozen=True)
class SavedState:
    """A state as it was read: checked to be one, not yet to fit anything."""

    path: Path
    recipe: dict[str, Any]
    progress: Progress
    scaler: dict[str, Any] | None
    tensors: dict[str, Tensor]

    def restore(self, model: Spikformer, optimiser: torch.optim.Optimizer, average: Spikformer | None) -> None:
        """Put weights, moments and average where they belong; anything missing or misshapen is refused."""
        try:
            model.load_state_dict(self._part("model."))
            if average is not None:
                average.load_state_dict(self._part("average."))
        except RuntimeError:
            raise self._misfit() from None
        for name, parameter in model.named_parameters():
            moments = {
                key: self.tensors[f"optimiser.{key}.{name}"]
                for key in _MOMENTS
                if f"optimiser.{key}.{name}" in self.tensors
            }
            if moments:  # none before the first step, and none of frozen weights
                shapes = [moments[key].shape if key in moments else None for key in _MOMENTS]
                if shapes != [(), parameter.shape, parameter.shape]:
                    raise self._misfit()
                optimiser.state[parameter] = {
                    key: value if key == "step" else value.to(parameter.device) for key, value in moments.items()
                }

    def _misfit(self) -> ValueError:
        return ValueError(f"{self.path} does not fit the model of this recipe; start anew.")

    def _part(self, prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): value for name, value in self.tensors.items() if name.startswith(prefix)}


def load_state(path: Path) -> SavedState:
    """The state in a file that `save_state` wrote."""
    metadata, tensors = read_safetensors(path)
    if metadata.get("format") != FORMAT or metadata.get("format_version") != str(FORMAT_VERSION):
        raise ValueError(f"{path} is not the state of a run that this release can resume.")
    try:
        recipe, progress, scaler = (json.loads(metadata[key]) for key in ("recipe", "progress", "scaler"))
        if not isinstance(recipe, dict) or not isinstance(scaler, dict | None):
            raise TypeError
        return SavedState(path, recipe, _read_progress(progress), scaler, tensors)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError(f"{path} holds no readable position of its run; it is damaged, start anew.") from None


def _read_progress(values: dict[str, Any]) -> Progress:
    progress = Progress(**values)
    counts = (progress.epoch, progress.batch, progress.step, progress.num_correct, progress.num_samples)
    if not all(isinstance(count, int) and count >= 0 for count in (*counts, progress.unreadable)):
        raise ValueError
    if len(progress.history) != progress.epoch or not all(isinstance(row, dict) for row in progress.history):
        raise ValueError
    return progress
