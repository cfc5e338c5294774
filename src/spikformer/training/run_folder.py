"""What a run leaves behind: one folder, every file of it whole at any moment.

recipe.json           every setting, as resolved
environment.json      versions, machine, command
metrics.csv           a row for each epoch
tensorboard/          the same, for TensorBoard
curves.png            the same, to look at
last.safetensors      weights after the last finished epoch
best.safetensors      weights of the epoch that was best on validation
state.safetensors     everything that --resume needs
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import platform
import shutil
import sys
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spikformer.data import DataSet
from spikformer.disk import TEMP_SUFFIX, remove_stale, write_atomically
from spikformer.models import Spikformer, save
from spikformer.training.devices import launch_id
from spikformer.training.recipe import Recipe
from spikformer.training.state import SavedState, load_state

_COPIES = 10  # of the weights that a folder may hold at a time: last, best, the state's four, and a temporary file's


_DESCRIBED = ("recipe", "data", "class_names", "num_train_samples", "launch", "settings")


class RunFolder:
    """The folder of one run. Whoever writes to it claims it first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "state.safetensors"
        self.last = path / "last.safetensors"
        self.best = path / "best.safetensors"
        self.metrics = path / "metrics.csv"
        self.curves = path / "curves.png"

    def open_new(self, *, overwrite: bool = False) -> None:
        """Make the folder and claim it; one that holds a run is refused, so that no work is lost."""
        if not overwrite and (self.state.exists() or self.last.exists()):
            raise ValueError(
                f"{self.path} holds a run already; add --resume to go on with it, --overwrite to replace it, or "
                "choose another --output."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise type(error)(f"{self.path} cannot be made: {error.strerror}; choose another --output.") from None
        self.claim()
        if overwrite:
            self._clear()

    def claim(self) -> None:
        """For this object's process alone, until either ends, however it ends."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        path = self.path / ".claim"
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise type(error)(f"{self.path} cannot be written to: {error.strerror}; choose another --output.") from None
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not inherited by processes that read ahead
        except OSError as error:
            os.close(file)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return  # a file system without locks
            raise ValueError(
                f"Another command is training in {self.path}; wait for it, or choose another --output."
            ) from None
        weakref.finalize(self, _end_claim, path, file)

    def check_saved(self) -> None:
        """Refuse a folder without a state to resume."""
        if not self.state.exists():
            raise FileNotFoundError(f"{self.path} holds no {self.state.name} to resume; leave --resume out to start.")

    def open_saved(self) -> SavedState:
        """The state to resume."""
        self.check_saved()
        return load_state(self.state)

    def check_same_data(self, data: DataSet) -> None:
        """A run goes on with the samples it began with: others would have other labels, or come in another order."""
        began = self.read_description()
        if began["class_names"] != list(data.class_names):
            raise ValueError(
                f"The run in {self.path} knows other classes than those of this data; give it the same data."
            )
        if began["num_train_samples"] != len(data.split("train")):
            raise ValueError(
                f"The run in {self.path} began with {began['num_train_samples']} training samples, and this data has "
                f"{len(data.split('train'))}; give it the same data."
            )

    def check_room(self, model: Spikformer) -> None:
        """Refuse to start where the run's files cannot be written; temporary files that a kill left make room first."""
        for temp in self.path.glob(f".*{TEMP_SUFFIX}"):
            remove_stale(temp)
        needed = _COPIES * sum(tensor.nbytes for tensor in model.state_dict().values())
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise OSError(
                f"{self.path} has {free / 1e9:.2f} GB free, and a run of this model may need {needed / 1e9:.2f} GB; "
                "make room or choose another --output."
            )
        write_atomically(self.path / ".writable", b"")
        (self.path / ".writable").unlink()

    def describe(self, recipe: Recipe, name: str, data_path: Path | None, data: DataSet) -> None:
        """Write what was asked for, and on what."""
        description = {
            "recipe": name,
            "data": None if data_path is None else str(data_path.absolute()),
            "class_names": list(data.class_names),
            "num_train_samples": len(data.split("train")),
            "launch": launch_id(),
            "settings": recipe.to_dict(),
        }
        self._write_json("recipe.json", description)
        self._write_json("environment.json", _environment())

    def note_resumption(self) -> None:
        """Write down where and when a run goes on: it may be another machine."""
        path = self.path / "environment.json"
        try:
            began = json.loads(path.read_text())
            resumed = [*began.get("resumed", []), _environment()]
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            began, resumed = {}, [_environment()]
        self._write_json(path.name, began | {"resumed": resumed})

    def read_description(self) -> dict[str, Any]:
        """What `describe` wrote."""
        path = self.path / "recipe.json"
        try:
            description = json.loads(path.read_text())
            return {key: description[key] for key in _DESCRIBED}
        except (OSError, KeyError, TypeError, ValueError, RecursionError):
            raise ValueError(f"{path} is missing or damaged; `spikformer train` writes it.") from None

    def keep(self, model: Spikformer, history: Sequence[dict[str, float]], *, best: bool) -> None:
        """What a finished epoch leaves, the weights first."""
        if best:
            save(model, self.best)
        save(model, self.last)
        write_atomically(self.metrics, _as_csv(history).encode())

    def read_metrics(self) -> list[dict[str, float]]:
        """A row for every finished epoch; empty cells, as of epochs without validation, are left out."""
        if not self.metrics.exists():
            raise FileNotFoundError(
                f"{self.path} holds no {self.metrics.name}, so it is no run, or none of its epochs has ended yet; wait "
                "for the first, or name another."
            )
        try:
            with self.metrics.open(newline="") as file:
                rows = [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)]
            epochs = [row["epoch"] for row in rows if "train_loss" in row]
        except (KeyError, TypeError, ValueError, csv.Error):
            raise ValueError(f"{self.metrics} is damaged; `spikformer train` writes it.") from None
        if not rows or epochs != list(range(1, len(rows) + 1)):
            raise ValueError(f"{self.metrics} should have a row for each epoch from 1 on; it is damaged.")
        return rows

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        write_atomically(self.path / name, (json.dumps(content, indent=2) + "\n").encode())

    def _clear(self) -> None:
        """Files that a run writes, and no others."""
        shutil.rmtree(self.path / "tensorboard", ignore_errors=True)
        for path in (self.state, self.last, self.best, self.metrics, self.curves):
            path.unlink(missing_ok=True)


def _end_claim(path: Path, file: int) -> None:
    path.unlink(missing_ok=True)
    os.close(file)


def _as_csv(history: Sequence[dict[str, float]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(history[-1]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return text.getvalue()


def _environment() -> dict[str, Any]:
    import lightning_fabric
    import numpy
    import torch

    from spikformer import __version__

    return {
        "spikformer": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "lightning_fabric": lightning_fabric.__version__,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "devices": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
