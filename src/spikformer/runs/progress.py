"""What training reports while it runs, as objects, as lines of a log and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from spikformer.runs.folder import Results, Run
from spikformer.training import Epoch, Iteration

_LOGGED = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "samples_per_second")


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
        f"{start.data_set}: {start.num_train_samples} samples of {start.num_classes} classes, {height}×{width}{frames}; "
        f"a model of {start.num_parameters / 1e6:.2f} M parameters, T = {start.time_steps}, on {start.world_size} × "
        f"{start.device}"
    )
