"""What a run leaves behind: one folder.

    recipe.json           every setting, as resolved, and the data
    environment.json      versions, machine, command
    metrics.csv           a row for each epoch
    tensorboard/          the same, for TensorBoard
    curves.png            the same, drawn
    last.safetensors      weights after the last finished epoch
    best.safetensors      weights of the epoch with the best validation accuracy
    state.safetensors     everything that resuming needs
    results.json          accuracies of last and best, once training has ended

Every file of it is whole at any moment.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, fields
from datetime import date
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any

from spikformer.card import Result
from spikformer.errors import FileError
from spikformer.io import read_bounded, read_json
from spikformer.training.recipe import Recipe
from spikformer.training.state import SavedState, load_state

Metrics = list[dict[str, float]]
_LARGEST_FIGURE = 1e12  # of a metric; what is beyond is damage, and cannot be drawn


@dataclass(frozen=True)
class Description:
    """recipe.json: what was asked for, and on which data."""

    recipe: str
    """The recipe's name."""
    data: str | None
    """Where the data set's files are; None for embedded sets."""
    class_names: list[str]
    num_train_samples: int
    launch: str | None
    """torchrun's id of the command."""
    settings: dict[str, Any]
    teacher: str | None = None
    """Weights that it learns from, if it does."""


_TYPES: dict[str, Any] = {
    "recipe": str,
    "data": (str, NoneType),
    "class_names": list,
    "num_train_samples": int,
    "launch": (str, NoneType),
    "settings": dict,
    "teacher": (str, NoneType),
}
_LATER_THAN_0_1: dict[str, Any] = {"teacher": None}


@dataclass(frozen=True)
class Checkpoint:
    """Figures of kept weights; accuracies are shares, None where the data has no such split."""

    epoch: int
    train_loss: float
    train_accuracy: float
    validation_accuracy: float | None = None
    test_accuracy: float | None = None

    @classmethod
    def of_epoch(cls, row: dict[str, float]) -> Checkpoint:
        """From a row of metrics."""
        return cls(int(row["epoch"]), row["train_loss"], row["train_accuracy"], row.get("validation_accuracy"))

    def on_card(self, weights: str, *, needs_data: bool) -> tuple[Result, ...]:
        """The accuracies as results of today, each with the command that measures it again."""
        more, today = " --data DIR" if needs_data else "", date.today().isoformat()
        shares = {"validation": self.validation_accuracy, "test": self.test_accuracy}
        return tuple(
            Result(
                metric="accuracy",
                split=split,
                value=share,
                date=today,
                command=f"spikformer evaluate {weights} --split {split}{more}",
            )
            for split, share in shares.items()
            if share is not None
        )


@dataclass(frozen=True)
class Results:
    """What came out of a run that has ended."""

    last: Checkpoint
    best: Checkpoint | None
    """The epoch that validation chose; None without a validation split."""
    seconds: float
    unreadable: int
    """Reads of samples that failed."""
    silent: bool
    """No spike reached the head of the last weights."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Results:
        best = values["best"]
        parts = {"last": Checkpoint(**values["last"]), "best": best if best is None else Checkpoint(**best)}
        found = cls(**{**values, **parts})
        kept = [found.last] if found.best is None else [found.last, found.best]
        figures = [figure for each in kept for figure in vars(each).values() if figure is not None]
        if not all(_is_figure(figure) for figure in (*figures, found.seconds, found.unreadable)):
            raise TypeError
        if not isinstance(found.silent, bool) or any(each.epoch is None for each in kept):
            raise TypeError
        return found


def _is_metric(name: str, value: float) -> bool:
    """Anything that a loss in float32 can be, and finite numbers of a moderate size."""
    return _is_figure(value) or (name.endswith("loss") and (not isfinite(value) or abs(value) < 1e39))


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST_FIGURE


class Run:
    """A run folder, to read; see `train`. A run that is still in training is fine."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.state = self.path / "state.safetensors"
        self.last = self.path / "last.safetensors"
        self.best = self.path / "best.safetensors"
        self.metrics_file = self.path / "metrics.csv"
        self.curves = self.path / "curves.png"
        self.results_file = self.path / "results.json"
        self._description_file = self.path / "recipe.json"

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def weights(self) -> Path:
        """The best weights, or the last where no epoch was chosen by validation."""
        for path in (self.best, self.last):
            if path.is_file():
                return path
        raise FileNotFoundError(f"{self.path} has no weights yet; `spikformer train` writes them after an epoch.")

    @property
    def description(self) -> Description:
        try:
            content = _LATER_THAN_0_1 | read_json(self._description_file)
            values = {name: content[name] for name in _TYPES}
            if not all(isinstance(values[name], kind) for name, kind in _TYPES.items()):
                raise TypeError
            if not all(isinstance(name, str) for name in values["class_names"]):
                raise TypeError
        except (OSError, KeyError, TypeError, ValueError):
            raise FileError(self._description_file, "is missing or damaged; `spikformer train` writes it.") from None
        return Description(**values)

    @property
    def recipe(self) -> Recipe:
        """The settings it was trained with."""
        try:
            return Recipe.from_dict(self.description.settings)
        except ValueError as error:
            problem = f"has settings that this version cannot use: {error}"
            raise FileError(self._description_file, problem, "unsupported") from None

    @property
    def metrics(self) -> Metrics:
        """A row for every finished epoch; empty cells, as of epochs without validation, are left out."""
        path = self.metrics_file
        if not path.exists():
            raise FileNotFoundError(
                f"{self.path} has no {path.name}: it is not a run folder, or its first epoch has not ended yet."
            )
        try:
            text = io.StringIO(read_bounded(path).decode(), newline="")
            rows = [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(text)]
            epochs = [row["epoch"] for row in rows if "train_loss" in row]
            if not all(_is_metric(name, value) for row in rows for name, value in row.items()):
                raise ValueError
        except (KeyError, TypeError, ValueError, csv.Error):
            raise FileError(path, "is damaged; `spikformer train` writes it.") from None
        if not rows or epochs != list(range(1, len(rows) + 1)):
            raise FileError(path, "is damaged: it should have a row for each epoch, starting at 1.")
        return rows

    @property
    def results(self) -> Results | None:
        """None until training has ended."""
        if not self.results_file.exists():
            return None
        try:
            return Results.from_dict(read_json(self.results_file))
        except (OSError, KeyError, TypeError, ValueError):
            raise FileError(self.results_file, "is damaged; `spikformer train --resume` writes it again.") from None

    def results_to_dict(self, results: Results) -> dict[str, Any]:
        """As plain data, with the paths of the weights; missing figures are left out."""
        found: dict[str, Any] = {"run": str(self.path)}
        for each in fields(results):
            value = getattr(results, each.name)
            if isinstance(value, Checkpoint):
                figures = {name: figure for name, figure in asdict(value).items() if figure is not None}
                value = {"weights": str(getattr(self, each.name)), **figures}
            if value is not None:
                found[each.name] = value
        return found

    def check_saved(self) -> None:
        """Raises if there is no state to resume."""
        if self.state.exists():
            return
        if self.last.exists():
            raise FileNotFoundError(f"{self.path} has {self._weights_alone()}")
        raise FileNotFoundError(f"{self.path} has no {self.state.name} to resume; leave --resume out to start a run.")

    def open_saved(self) -> SavedState:
        """The state to resume."""
        self.check_saved()
        return load_state(self.state)

    def _weights_alone(self) -> str:
        return (
            f"weights of a run, but no {self.state.name} to resume; add --overwrite to start again, or choose another "
            "--output."
        )
