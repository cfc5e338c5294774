"""A run folder, opened and measured: all that a report says of it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch

from spikformer import __version__
from spikformer.analysis.energy import audit
from spikformer.analysis.firing import measure_firing
from spikformer.analysis.recorder import Record
from spikformer.analysis.traces import LayerTraces, chosen_layer, stem_maps, trace_layer
from spikformer.config import NetworkConfig
from spikformer.data import DataSet
from spikformer.errors import FieldError, FileError
from spikformer.io import read_json
from spikformer.models import SpikingNetwork
from spikformer.paper import PaperRow
from spikformer.presets import PRESETS, get_preset
from spikformer.runs.folder import Description, Run
from spikformer.runs.measure import Watched, attention_maps, batches, watch_samples
from spikformer.runs.trained import choose_samples, load_trained, open_data
from spikformer.training import EvalOptions, Evaluation, choose_device, evaluate, get_recipe
from spikformer.training.progress import best_epoch
from spikformer.validation import Accelerator, check_at_least
from spikformer.visualise.report import Report, ReportedRun, Sample, Weights, write_report

History = list[dict[str, float]]

PAGE = "page.html"
"""The browser page of a run, in its folder; `spikformer page RUN` writes it."""

_RASTER = 48  # neurons


@dataclass(frozen=True)
class _Trained:
    """A file of weights, read."""

    kind: str
    epoch: int
    model: SpikingNetwork
    sha256: str

    def weights(self, history: History, found: Evaluation) -> Weights:
        row = history[self.epoch - 1]
        return Weights(
            kind=self.kind,
            epoch=self.epoch,
            sha256=self.sha256,
            train_loss=row["train_loss"],
            accuracy=found.top1,
            validation_accuracy=row.get("validation_accuracy"),
        )


@dataclass(frozen=True)
class OpenRun:
    """A run whose files have been read and fit together; nothing is measured yet."""

    folder: Path
    name: str
    split: str
    data: DataSet
    description: Description
    environment: dict[str, Any]
    planned_epochs: int
    history: History
    last: _Trained
    best: _Trained | None

    def num_passes(self, max_samples: int) -> int:
        """Samples that `measure` goes through, for a bar."""
        count = len(self.data.split(self.split))
        return count * (2 if self.best else 1) + min(max_samples, count)

    def measure(
        self,
        *,
        num_shown: int,
        max_samples: int,
        batch_size: int,
        device: torch.device,
        on_samples: Callable[[int], None],
    ) -> ReportedRun:
        """Everything about this run. `on_samples` gets the number of samples measured."""
        found = {}
        for each in (self.last, self.best) if self.best else (self.last,):
            model = each.model.to(device)
            options = EvalOptions(batch_size=batch_size, on_batch=on_samples)
            found[each.kind] = evaluate(model, self.data, self.split, options)
        shown = self.best or self.last
        model, evaluation = shown.model, found[shown.kind]
        firing = measure_firing(model, batches(model, self.data, self.split, max_samples, batch_size), on_samples)
        indices = choose_samples(self.data, self.split, num_shown)
        watched = list(watch_samples(model, self.data, self.split, indices))
        samples = [_sample(model, each) for each in watched]
        settings, recipe = self.description.settings, self.description.recipe
        return ReportedRun(
            name=self.name,
            recipe=recipe,
            data=self.data.name,
            events=self.data.events,
            class_names=self.data.class_names,
            num_parameters=sum(parameter.numel() for parameter in model.parameters()),
            num_train_samples=self.description.num_train_samples,
            time_steps=firing.time_steps,
            planned_epochs=self.planned_epochs,
            history=self.history,
            last=self.last.weights(self.history, found["last"]),
            best=self.best.weights(self.history, found["best"]) if self.best else None,
            split=self.split,
            evaluation=evaluation,
            firing=firing,
            energy=audit(model, firing),
            samples=samples,
            traces=_traces(model, watched[0].seen) if watched else None,
            stem_maps=stem_maps(watched[0].seen) if watched else {},
            settings=settings,
            environment=self.environment,
            paper=_paper_row(recipe, model.config, self.data.name),
            network=_other_network(recipe, model.config),
        )


def _paper_row(recipe: str, config: NetworkConfig, data_set: str) -> PaperRow | None:
    """What the paper prints of exactly this model on this data set; None for one that was changed."""
    if recipe not in PRESETS or config != get_preset(recipe).config or data_set != get_recipe(recipe).data_set:
        return None
    return get_preset(recipe).paper


def _other_network(recipe: str, config: NetworkConfig) -> str | None:
    """What people call a network that was trained by the recipe of another architecture."""
    same = recipe not in PRESETS or type(config) is type(get_preset(recipe).config)
    return None if same else config.title


def open_run(path: Path, name: str, data_path: Path | None, split: str) -> OpenRun:
    """Read what a run left, and raise where its files do not fit together."""
    folder = Run(path)
    if path.is_file():
        raise NotADirectoryError(f"{path} is a file; name the folder of the run, as {path.parent}.")
    if not path.is_dir():
        raise FileNotFoundError(f"There is no folder {path}; name one that `spikformer train` wrote.")
    history = folder.metrics
    if not folder.last.exists():
        raise FileNotFoundError(f"{path} holds no {folder.last.name}; `spikformer train` writes it after an epoch.")
    description, recipe = folder.description, folder.recipe
    last = _read(folder.last, "last", len(history), description)
    kept = best_epoch(history)
    best = _read(folder.best, "best", kept, description) if kept and folder.best.exists() else None
    recorded = Path(description.data) if description.data else None
    data = open_data(last.model, data_path or recorded)
    data.split(split)
    environment = _read_environment(path)
    return OpenRun(path, name, split, data, description, environment, recipe.total_epochs, history, last, best)


def open_runs(paths: Sequence[Path], data: Path | None = None, split: str = "test") -> list[OpenRun]:
    """Each under a name of its own: that of its folder, where two are called alike with as much before it."""
    if not paths:
        raise FieldError("runs", "Name at least one run, a folder that `spikformer train` wrote.")
    places = [path.resolve() for path in paths]
    if len(set(places)) < len(places):
        raise FieldError("runs", "A run is named twice; name each once.")
    opened = []
    for path, place in zip(paths, places, strict=True):
        tails = (place.parts[-length:] for length in range(1, len(place.parts) + 1))
        own = next(tail for tail in tails if sum(other.parts[-len(tail) :] == tail for other in places) == 1)
        opened.append(open_run(path, "/".join(own), data, split))
    return opened


def report_runs(
    opened: Sequence[OpenRun],
    output: Path,
    *,
    num_shown: int = 6,
    max_samples: int = 512,
    batch_size: int = 128,
    accelerator: Accelerator = "auto",
    on_samples: Callable[[int], None] = lambda _: None,
) -> list[ReportedRun]:
    """Measure runs, write one page about them, and return what it says.

    num_shown    inputs whose attention is shown, of as many classes as can be
    max_samples  inputs to measure firing and energy on, taken from all over the split
    on_samples   gets the number of samples measured, in all as many as the runs' `num_passes`
    """
    for name, value, least in (
        ("num_shown", num_shown, 0),
        ("max_samples", max_samples, 1),
        ("batch_size", batch_size, 1),
    ):
        check_at_least(name, value, least)
    device = choose_device(accelerator)
    measured = [
        replace(
            each.measure(
                num_shown=num_shown,
                max_samples=max_samples,
                batch_size=batch_size,
                device=device,
                on_samples=on_samples,
            ),
            page=_page_link(each.folder, output),
        )
        for each in opened
    ]
    write_report(Report(measured, version=__version__, made=time.strftime("%Y-%m-%d %H:%M")), output)
    return measured


def _page_link(run: Path, output: Path) -> str | None:
    """The address of a run's browser page, if it has one, as a link of the report."""
    if not (run / PAGE).is_file():
        return None
    return quote(Path(os.path.relpath(run / PAGE, output.parent)).as_posix())


def _read(path: Path, kind: str, epoch: int, description: Description) -> _Trained:
    """Weights that are of this run: of the same model, for the same classes."""
    model = load_trained(path)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    recipe, named, answered = path.with_name("recipe.json"), len(description.class_names), model.config.num_classes
    if named != answered:
        raise FileError(
            recipe, f"names {named} classes, and {path.name} has {answered}; one of them is of another run."
        )
    config = json.loads(json.dumps(model.config.to_dict()))  # as a file has it, lists for tuples
    if description.settings.get("model") != config or tuple(description.class_names) != model.card.class_names:
        raise FileError(path, f"holds another model than {recipe} describes; one of them is of another run.", "unfit")
    return _Trained(kind, epoch, model, sha256)


def _read_environment(path: Path) -> dict[str, Any]:
    """What the run recorded about the machine; empty if it is missing or damaged."""
    try:
        environment = read_json(path / "environment.json")
    except (OSError, ValueError):
        return {}
    return environment if isinstance(environment, dict) else {}


def _sample(model: SpikingNetwork, watched: Watched) -> Sample:
    return Sample(
        picture=watched.sample,
        source=watched.source,
        label=watched.label or "",
        answer=watched.answer,
        confidence=watched.confidence,
        attention=attention_maps(model, watched),
    )


def _traces(model: SpikingNetwork, seen: Record) -> LayerTraces | None:
    """Single neurons while the network saw a sample; None where none spikes."""
    return trace_layer(model, seen, chosen_layer(seen), _RASTER) if seen.spikes else None
