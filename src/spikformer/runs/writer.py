"""Writing a run folder: claimed by one process, never mixed with other files, every file replaced whole."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from spikformer.data import DataSet
from spikformer.errors import FieldError, FileError
from spikformer.io import TEMP_SUFFIX, read_json, remove_stale, write_atomically
from spikformer.models import SpikingNetwork, load, save
from spikformer.runs.folder import Description, Results, Run
from spikformer.runs.process import FolderLock
from spikformer.training.distributed import launch_id
from spikformer.training.recipe import Recipe

LOG = "log.txt"
"""A cell's log, which `ablate` opens before the run begins."""
_COPIES = 10  # of the weights that a folder may hold at a time: last, best, the state's four, and a temporary file's


class RunWriter(Run):
    """The folder of a run while it is trained. Claim it before writing."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._lock = FolderLock(self.path)

    def open_new(self, *, overwrite: bool = False) -> None:
        """Make the folder and claim it. Raises if it has a run, or files that are not a run's."""
        self._check_no_foreign_files()
        if not overwrite and self.state.exists():
            raise FileError(
                self.path,
                "has a run already; add --resume to continue it, --overwrite to replace it, or choose "
                "another --output.",
                "unfit",
            )
        if not overwrite and self.last.exists():
            raise FileError(self.path, f"has {self._weights_alone()}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise type(error)(f"{self.path} cannot be made: {error.strerror}; choose another --output.") from None
        self.claim()
        if overwrite:
            self._clear()

    def claim(self) -> None:
        """For this process alone; ValueError if another one trains here."""
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def _check_no_foreign_files(self) -> None:
        """A run starts in an empty folder, or in one that recipe.json shows to be a run's. Hidden files are ignored."""
        names = sorted(path.name for path in self.path.glob("[!.]*") if path.name != LOG)
        if not names:
            return
        try:
            _ = self.description
        except ValueError:
            listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise FileError(
                self.path, f"is not empty and not a run folder: it has {listed}; choose another --output.", "unfit"
            ) from None

    def check_same_data(self, data: DataSet) -> None:
        """A run resumes with the samples it began with: others would have other labels, or come in another order."""
        began = self.description
        if began.class_names != list(data.class_names):
            raise FieldError("data", f"The run in {self.path} was started with other classes; give it the same data.")
        if began.num_train_samples != len(data.split("train")):
            raise FieldError(
                "data",
                f"The run in {self.path} was started with {began.num_train_samples} training samples, but this data "
                f"has {len(data.split('train'))}; give it the same data.",
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
                "free some, or choose another --output."
            )
        trial = self.path / ".writable"
        try:
            write_atomically(trial, b"")
        finally:
            trial.unlink(missing_ok=True)

    def describe(
        self, recipe: Recipe, name: str, data_path: Path | None, data: DataSet, teacher: Path | None = None
    ) -> None:
        """Write what was asked for, on which data and which machine."""
        self.write_description(
            Description(
                recipe=name,
                data=None if data_path is None else str(data_path.absolute()),
                class_names=list(data.class_names),
                num_train_samples=len(data.split("train")),
                launch=launch_id(),
                settings=recipe.to_dict(),
                teacher=None if teacher is None else str(teacher.absolute()),
            )
        )
        self._write_json("environment.json", _environment())

    def write_description(self, description: Description) -> None:
        self._write_json(self._description_file.name, asdict(description))

    def note_resumption(self) -> None:
        """Note where and when a run is resumed: it may be another machine. Its results are out of date."""
        self.results_file.unlink(missing_ok=True)
        path = self.path / "environment.json"
        try:
            began = read_json(path)
            resumed = [*began.get("resumed", []), _environment()]
        except (OSError, ValueError, AttributeError, TypeError):
            began, resumed = {}, [_environment()]
        self._write_json(path.name, began | {"resumed": resumed})

    def keep(self, model: SpikingNetwork, history: Sequence[dict[str, float]], *, best: bool) -> None:
        """What a finished epoch leaves, the weights first."""
        if best:
            save(model, self.best)
        save(model, self.last)
        write_atomically(self.metrics_file, _as_csv(history).encode())

    def keep_results(self, results: Results) -> None:
        self._write_json(self.results_file.name, asdict(results))

    def note_on_cards(self, results: Results) -> None:
        """Write the weights anew, with their accuracies on their cards."""
        data = self.description.data
        for path, kept in ((self.last, results.last), (self.best, results.best)):
            if kept is not None:
                model = load(path)
                card = replace(model.card, results=kept.on_card(path.name, needs_data=data is not None))
                save(model, path, card)

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        write_atomically(self.path / name, (json.dumps(content, indent=2) + "\n").encode())

    def _clear(self) -> None:
        """Remove what a run writes, and nothing else; the state last, so that weights are never left without one."""
        board = self.path / "tensorboard"
        kept = (self.results_file, self.last, self.best, self.metrics_file, self.curves, self.state)
        for path in (*board.rglob("events.out.tfevents.*"), *kept):
            path.unlink(missing_ok=True)
        for folder in (board / "iterations", board):
            with suppress(OSError):  # it has other files, or is not there
                folder.rmdir()


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
