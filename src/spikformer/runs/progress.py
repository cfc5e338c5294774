"""What training reports while it runs: as objects, as lines of a log, as JSON and to TensorBoard."""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from spikformer.analysis.firing import firing_rates
from spikformer.data import DataSet
from spikformer.data.dataset import SPLITS
from spikformer.models import SpikingNetwork
from spikformer.runs.folder import Results, Run
from spikformer.runs.measure import batches
from spikformer.training import Epoch, Iteration, Trainer
from spikformer.training.progress import Progress

_LOGGED = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "samples_per_second")
_FIRING_SAMPLES = 32


@dataclass(frozen=True)
class Started:
    """Training begins: what, on what. A data set of an unexpected size should be noticed."""

    run: Path
    recipe: str
    data_set: str
    num_train_samples: int
    num_classes: int
    image_size: tuple[int, int]
    events: bool
    num_parameters: int
    time_steps: int
    device: str
    world_size: int
    total_epochs: int
    iterations_per_epoch: int
    iteration: int
    """Iterations that are done, by the run that is resumed."""
    warnings: list[str]

    @classmethod
    def of(cls, trainer: Trainer, run: Path, recipe: str, warnings: list[str]) -> Started:
        data, fabric = trainer.data, trainer.fabric
        return cls(
            run=run,
            recipe=recipe,
            data_set=data.name,
            num_train_samples=len(data.split("train")),
            num_classes=len(data.class_names),
            image_size=data.size,
            events=data.events,
            num_parameters=sum(parameter.numel() for parameter in trainer.model.parameters()),
            time_steps=trainer.recipe.model.time_steps,
            device=fabric.device.type,
            world_size=fabric.world_size,
            total_epochs=trainer.recipe.total_epochs,
            iterations_per_epoch=trainer.iterations_per_epoch,
            iteration=trainer.progress.iteration,
            warnings=warnings,
        )


@dataclass(frozen=True)
class Stopped:
    """`stop` returned True; the state is saved in the middle of this epoch."""

    run: Path
    epoch: int


@dataclass(frozen=True)
class Finished:
    run: Path
    results: Results
    warnings: list[str]


Event: TypeAlias = Started | Iteration | Epoch | Stopped | Finished


def describe_event(event: Event) -> list[str]:
    """Lines for a log; nothing for iterations, of which there are too many."""
    match event:
        case Started():
            return [_describe_start(event), *event.warnings]
        case Epoch():
            shown = (f"{name} {event.metrics[name]:.4f}" for name in _LOGGED if name in event.metrics)
            return [f"epoch {event.number}: {', '.join(shown)}"]
        case Stopped():
            return [f"Stopped in epoch {event.epoch}, saved; continue with --resume --output {event.run}"]
    return []


def event_to_dict(event: Event) -> dict[str, Any]:
    """As plain data, with the kind of event under its name."""
    kind = {"event": type(event).__name__.lower()}
    if isinstance(event, Finished):
        return kind | Run(event.run).results_to_dict(event.results) | {"warnings": event.warnings}
    fields = asdict(event) if is_dataclass(event) else event._asdict()
    return kind | {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}


def _describe_start(start: Started) -> str:
    height, width = start.image_size
    frames = f" in {start.time_steps} frames" if start.events else ""
    return (
        f"{start.data_set}: {start.num_train_samples} samples of {start.num_classes} classes, "
        f"{height}×{width}{frames}; "
        f"a model of {start.num_parameters / 1e6:.2f} M parameters, T = {start.time_steps}, on {start.world_size} × "
        f"{start.device}"
    )


class Board:
    """Scalars by epoch, and by iteration in the run `iterations` beside. A resumed log drops what lies ahead."""

    def __init__(self, folder: Path, progress: Progress, *, enabled: bool) -> None:
        self._writer = self._iterations = None
        if enabled:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=progress.epoch + 1)
            self._iterations = SummaryWriter(str(folder / "iterations"), purge_step=progress.iteration + 1)

    def __enter__(self) -> Board:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in (self._writer, self._iterations):
            if writer is not None:
                writer.close()

    def add_iteration(self, iteration: Iteration) -> None:
        if self._iterations is not None:
            for name in ("loss", "learning_rate", "samples_per_second"):
                self._iterations.add_scalar(f"iteration/{name}", getattr(iteration, name), iteration.number)

    def add(self, metrics: dict[str, float]) -> None:
        """A row of metrics, of an epoch."""
        if self._writer is not None:
            for name, value in metrics.items():
                if name != "epoch":
                    self._writer.add_scalar(_tag(name), value, int(metrics["epoch"]))
            self._writer.flush()

    def add_firing(self, model: SpikingNetwork, data: DataSet, epoch: int) -> None:
        """Spikes per neuron and step of every layer, after an epoch, on a few samples that stay the same."""
        if self._writer is not None:
            split = "validation" if data.validation is not None else "train"
            for inputs in batches(model, data, split, _FIRING_SAMPLES, _FIRING_SAMPLES):
                for name, rate in firing_rates(model, inputs).items():
                    self._writer.add_scalar(f"firing/{name}", rate, epoch)


def _tag(name: str) -> str:
    """Quantities of a split go together, under its name."""
    split, _, quantity = name.partition("_")
    return f"{split}/{quantity}" if split in SPLITS else name
