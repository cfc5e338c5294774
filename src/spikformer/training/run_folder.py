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
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Any

from spikformer.data import DataSet
from spikformer.disk import TEMP_SUFFIX, remove_stale, write_atomically
from spikformer.models import SpikingNetwork, save
from spikformer.training.bounded import read_bounded, read_json
from spikformer.training.devices import launch_id
from spikformer.training.recipe import Recipe
from spikformer.training.state import SavedState, load_state

_COPIES = 10  # of the weights that a folder may hold at a time: last, best, the state's four, and a temporary file's


_DESCRIBED: dict[str, Any] = {  # what recipe.json holds
    "recipe": str,
    "data": (str, NoneType),
    "class_names": list,
    "num_train_samples": int,
    "launch": (str, NoneType),
    "settings": dict,
}
_WRITTEN_BEFORE = {"log.txt"}  # by `ablate`, before its cell's run begins


class RunFolder:
    """The folder of one run. Whoever writes to it claims it first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "state.safetensors"
        self.last = path / "last.safetensors"
        self.best = path / "best.safetensors"
        self.metrics = path / "metrics.csv"
        self.curves = path / "curves.png"
        self._description = path / "recipe.json"

    def open_new(self, *, overwrite: bool = False) -> None:
        """Make the folder and claim it. Raises if it holds a run, or files that are not a run's."""
        self._check_no_foreign_files()
        if not overwrite and self.state.exists():
            raise ValueError(
                f"{self.path} holds a run already; add --resume to go on with it, --overwrite to replace it, or "
                "choose another --output."
            )
        if not overwrite and self.last.exists():
            raise ValueError(f"{self.path} holds {self._weights_alone()}")
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
        while True:
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                message = f"{self.path} cannot be written to: {error.strerror}; choose another --output."
                raise type(error)(message) from None
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not inherited by processes that read ahead
            except OSError as error:
                os.close(file)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    return  # a file system without locks
                raise ValueError(
                    f"Another command is training in {self.path}; wait for it, or choose another --output."
                ) from None
            if _is_file(path, file):
                weakref.finalize(self, _end_claim, path, file)
                return
            os.close(file)  # whoever held it removed it after we opened it: the next command would make another

    def check_saved(self) -> None:
        """Raises if there is no state to resume."""
        if self.state.exists():
            return
        if self.last.exists():
            raise FileNotFoundError(f"{self.path} holds {self._weights_alone()}")
        raise FileNotFoundError(f"{self.path} holds no {self.state.name} to resume; leave --resume out to start.")

    def _weights_alone(self) -> str:
        return (
            f"weights of a run, but no {self.state.name} to resume from; add --overwrite to start anew, or choose "
            "another --output."
        )

    def _check_no_foreign_files(self) -> None:
        """A run starts in an empty folder, or in one that recipe.json shows to be a run's. Hidden files are ignored."""
        names = sorted(path.name for path in self.path.glob("[!.]*") if path.name not in _WRITTEN_BEFORE)
        if not names:
            return
        try:
            self.read_description()
        except ValueError:
            listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise ValueError(
                f"{self.path} is not empty and not the folder of a run: it holds {listed}; choose another --output."
            ) from None

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

    def check_room(self, model: SpikingNetwork) -> None:
        """Raises where the run's files cannot be written; temporary files that a kill left are removed first."""
        for temp in self.path.glob(f".*{TEMP_SUFFIX}"):
            remove_stale(temp)
        there = sum(path.stat().st_size for path in (self.state, self.last, self.best) if path.exists())
        needed = _COPIES * sum(tensor.nbytes for tensor in model.state_dict().values()) - there
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
        self._write_json(self._description.name, description)
        self._write_json("environment.json", _environment())

    def note_resumption(self) -> None:
        """Write down where and when a run goes on: it may be another machine."""
        path = self.path / "environment.json"
        try:
            began = read_json(path)
            resumed = [*began.get("resumed", []), _environment()]
        except (OSError, ValueError, AttributeError, TypeError):
            began, resumed = {}, [_environment()]
        self._write_json(path.name, began | {"resumed": resumed})

    def read_description(self) -> dict[str, Any]:
        """What `describe` wrote."""
        try:
            content = read_json(self._description)
            description = {key: content[key] for key in _DESCRIBED}
            if not all(isinstance(description[key], kind) for key, kind in _DESCRIBED.items()):
                raise TypeError
            if not all(isinstance(name, str) for name in description["class_names"]):
                raise TypeError
        except (OSError, KeyError, TypeError, ValueError):
            raise ValueError(f"{self._description} is missing or damaged; `spikformer train` writes it.") from None
        return description

    def read_recipe(self) -> Recipe:
        """The settings among what `describe` wrote."""
        try:
            return Recipe.from_dict(self.read_description()["settings"])
        except ValueError as error:
            raise ValueError(f"{self._description} holds settings that this release cannot use: {error}") from None

    def keep(self, model: SpikingNetwork, history: Sequence[dict[str, float]], *, best: bool) -> None:
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
            text = io.StringIO(read_bounded(self.metrics).decode(), newline="")
            rows = [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(text)]
            epochs = [row["epoch"] for row in rows if "train_loss" in row]
        except (KeyError, TypeError, ValueError, csv.Error):
            raise ValueError(f"{self.metrics} is damaged; `spikformer train` writes it.") from None
        if not rows or epochs != list(range(1, len(rows) + 1)):
            raise ValueError(f"{self.metrics} should have a row for each epoch from 1 on; it is damaged.")
        return rows

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        write_atomically(self.path / name, (json.dumps(content, indent=2) + "\n").encode())

    def _clear(self) -> None:
        """Files that a run writes, and no others; the state last, so that weights are never left without one."""
        board = self.path / "tensorboard"
        for path in (*board.glob("events.out.tfevents.*"), self.last, self.best, self.metrics, self.curves, self.state):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # it holds something else, or is not there
            board.rmdir()


def _is_file(path: Path, file: int) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _end_claim(path: Path, file: int) -> None:
    """Removed while it is still locked: whoever opened it before sees that its name is gone, and opens another."""
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
