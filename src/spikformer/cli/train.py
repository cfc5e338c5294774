"""Train a model by a recipe. Any setting can be overridden; --help after a recipe's name shows its own defaults.

Example: spikformer train
Example: spikformer train spikformer_4_384_cifar10 --data DIR --epochs 100 --model.time-steps 2
Example: spikformer train --resume --output runs/spikformer_tiny_digits
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from spikformer.training.recipe import Recipe
from spikformer.training.recipes import DEFAULT, get_recipe

_SET_BY_DATA = {"model.num_classes", "model.in_channels"}

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from spikformer.data import DataSet
    from spikformer.training import RunFolder, Trainer
    from spikformer.training.state import SavedState


@dataclass(frozen=True)
class Options:
    recipe: Annotated[str, tyro.conf.Positional] = DEFAULT
    """A recipe; most are called as their model."""
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for embedded sets."""
    output: Path | None = None
    """Folder of the run; runs/RECIPE by default."""
    from_weights: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Start from these weights, whatever of them fits."""
    resume: bool = False
    """Go on with the run in --output, with its settings."""
    overwrite: bool = False
    """Replace the run in --output."""
    workers: int = 0
    """Processes that read ahead, for each device; 0 reads in the training process."""
    strict: bool = False
    """Stop at a file that cannot be read, instead of going on without it."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to train; auto takes GPUs if there are any."""
    devices: int | None = None
    """Processes on this machine, one a GPU; all GPUs by default, one process on a CPU."""
    nodes: int = 1
    """Machines; start the command on each, or use torchrun."""
    save_minutes: float = 10.0
    """Save the state this often, besides after every epoch."""
    json: bool = False
    """Print JSON instead of a live line and a table."""
    settings: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


def parse(arguments: list[str]) -> Options:
    """The recipe's name comes first, so that its settings are the defaults of the rest."""
    name = arguments[0] if arguments and not arguments[0].startswith("-") else DEFAULT
    default = Options(recipe=name, settings=get_recipe(name))
    options: Options = tyro.cli(
        Options, prog="spikformer train", description=__doc__, args=arguments, default=default, use_underscores=False
    )
    if options.recipe != name:
        raise ValueError(f"The recipe's name comes first: spikformer train {options.recipe} …, then its options.")
    if options.resume and options.overwrite:
        raise ValueError("--resume goes on with a run and --overwrite replaces it; give one of them.")
    return options


def run(options: Options) -> int:
    from spikformer.memory import keep_freed_memory
    from spikformer.training import Diverged, Interrupted, RunFolder, Trainer, build_fabric

    if options.workers < 0:
        raise ValueError(f"--workers must be at least 0, got {options.workers}.")
    if options.save_minutes < 0:
        raise ValueError(f"--save-minutes must be at least 0, got {options.save_minutes:g}.")
    keep_freed_memory()
    folder = RunFolder(options.output or Path("runs") / options.recipe)
    saved = folder.open_saved() if _resumes(options, folder) else None
    name, recipe, data_path = _settings(options, folder, saved)
    fabric = build_fabric(
        recipe.precision, accelerator=options.accelerator, devices=options.devices, nodes=options.nodes
    )
    recipe, data = _open_data(recipe, data_path, fabric)
    trainer = Trainer(
        recipe,
        data,
        fabric,
        state_path=folder.state,
        workers=options.workers,
        strict=options.strict,
        save_seconds=60 * options.save_minutes,
    )
    notes = _prepare(options, name, trainer, folder, saved, data_path)
    try:
        return _train(options, trainer, folder, notes)
    except Interrupted:
        _draw_curves(trainer, folder)
        _say(
            f"Stopped in epoch {trainer.progress.epoch + 1}, saved; go on with --resume --output {folder.path}", trainer
        )
        fabric.barrier()  # a process that ends early would have the others ended before they are done
        return 1
    except Diverged as end:
        _draw_curves(trainer, folder)
        _say(str(end), trainer)
        fabric.barrier()
        return 1
    except RuntimeError as error:
        if fabric.world_size == 1 or ("gloo" not in str(error) and "NCCL" not in str(error)):
            raise
        raise OSError(
            "Another process of this run died; go on with --resume, or let torchrun --max-restarts do it."
        ) from None


def _resumes(options: Options, folder: RunFolder) -> bool:
    """Torchrun starts a run anew when one of its processes dies; then, too, it goes on where it was."""
    from spikformer.training.devices import launch_id, was_restarted

    if options.resume or not was_restarted() or not folder.state.exists():
        return options.resume
    return folder.read_description()["launch"] == launch_id()  # else it is an older run that was refused


def _settings(options: Options, folder: RunFolder, saved: SavedState | None) -> tuple[str, Recipe, Path | None]:
    """Name, recipe and data; of a run that goes on, its own, and others given beside them must be the same."""
    if saved is None:
        return options.recipe, options.settings, options.data
    description = folder.read_description()
    name = description["recipe"]
    if options.recipe not in (name, DEFAULT):
        raise ValueError(f"The run in {folder.path} is one of {name}, not of {options.recipe}; name that, or none.")
    settings = Recipe.from_dict(saved.recipe)
    overridden = _differences(options.settings, get_recipe(options.recipe))
    changed = sorted(overridden & _differences(options.settings, settings) - _SET_BY_DATA)
    if changed:
        raise ValueError(
            f"The run in {folder.path} has another {', '.join(changed)}; resume it without changing settings, or start "
            "another."
        )
    noted = description["data"]
    return name, settings, options.data or (Path(noted) if noted else None)


def _differences(one: Recipe, other: Recipe) -> set[str]:
    """Names of settings that differ, as they are given on the command line."""
    ours, theirs = _flat(one.to_dict()), _flat(other.to_dict())
    return {name for name, value in ours.items() if value != theirs[name]}


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = list(value) if isinstance(value, tuple) else value
    return flat


def _open_data(recipe: Recipe, path: Path | None, fabric: Fabric) -> tuple[Recipe, DataSet]:
    """The data in the model's form, and the recipe with a model for as many classes and channels."""
    from spikformer.data import open_for_model

    if not fabric.is_global_zero:
        fabric.barrier()  # the first process downloads and unpacks for all
    data = open_for_model(recipe.model, recipe.data_set, path, validation_share=recipe.validation_share)
    if fabric.is_global_zero:
        fabric.barrier()
    model = recipe.model.override(num_classes=len(data.class_names), in_channels=data.channels)
    return replace(recipe, model=model), data


def _prepare(
    options: Options, name: str, trainer: Trainer, folder: RunFolder, saved: SavedState | None, data_path: Path | None
) -> list[str]:
    """Everything that can go wrong before the first step; returns what is to be said."""
    from spikformer.models import load
    from spikformer.training import find_traps, transfer_weights

    notes = find_traps(trainer.recipe, get_recipe(name), trainer.data)
    if name.endswith("_transfer") and options.from_weights is None and saved is None:
        raise ValueError(f"{name} starts from ImageNet weights; give them with --from.")
    if options.from_weights is not None:
        if saved is not None:
            raise ValueError("--from starts a run and --resume goes on with one; give one of them.")
        notes.append(f"{options.from_weights}: {transfer_weights(load(options.from_weights), trainer.model)}.")
    trainer.model.about["recipe"] = {"name": name, **trainer.recipe.to_dict()}
    if saved is not None:
        _check_same_data(folder, trainer.data)
    if trainer.fabric.is_global_zero:
        if saved is None:
            folder.open_new(overwrite=options.overwrite)
            folder.describe(trainer.recipe, name, data_path, trainer.data)
        folder.check_room(trainer.model)
    trainer.start(saved)
    return notes


def _check_same_data(folder: RunFolder, data: DataSet) -> None:
    """A run goes on with the samples it began with: others would have other labels, or come in another order."""
    noted = folder.read_description()
    if noted["class_names"] != list(data.class_names):
        raise ValueError(
            f"The run in {folder.path} knows other classes than those of this data; give it the same data."
        )
    if noted["num_train_samples"] != len(data.split("train")):
        raise ValueError(
            f"The run in {folder.path} began with {noted['num_train_samples']} training samples, and this data has "
            f"{len(data.split('train'))}; give it the same data."
        )


def _train(options: Options, trainer: Trainer, folder: RunFolder, notes: list[str]) -> int:
    from spikformer.cli.live import LiveLine, results_table, stop_on_signal
    from spikformer.training import Epoch
    from spikformer.training.board import Board

    main = trainer.fabric.is_global_zero
    for note in (_summary(trainer), *notes):
        _say(note, trainer)
    with (
        stop_on_signal() as stop,
        Board(folder.path / "tensorboard", trainer.progress.epoch, enabled=main) as board,
        LiveLine(trainer, enabled=main and not options.json) as line,
    ):
        for event in trainer.run(stop):
            line.show(event)
            if isinstance(event, Epoch) and main:
                folder.keep(trainer.finished_model, trainer.progress.history, best=event.best)
                board.add(event.metrics)
    results = _results(trainer, folder)
    _draw_curves(trainer, folder)
    if not main:
        return 0
    if options.json:
        print(json.dumps(results | {"notes": notes}))
    else:
        results_table(results)
    return 0


def _summary(trainer: Trainer) -> str:
    """What is about to be trained, on what: a set in another size than expected should be noticed."""
    data, config = trainer.data, trainer.recipe.model
    height, width = data.size
    frames = f" in {config.time_steps} frames" if data.events else ""
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    count = len(data.split("train"))
    return (
        f"{data.name}: {count} samples of {len(data.class_names)} classes, {height}×{width}{frames}; "
        f"a model of {parameters / 1e6:.2f} M parameters, T = {config.time_steps}, on {trainer.fabric.world_size} × "
        f"{trainer.fabric.device.type}"
    )


def _results(trainer: Trainer, folder: RunFolder) -> dict[str, Any]:
    """The last epoch, and the one that validation chose, both on the test split."""
    from spikformer.models import load

    progress = trainer.progress
    results: dict[str, Any] = {
        "run": str(folder.path),
        "seconds": progress.seconds,
        "unreadable": progress.unreadable,
        "last": {"weights": str(folder.last), "epoch": progress.epoch, **_figures(progress.history[-1])},
    }
    trainer.fabric.barrier()
    if trainer.data.test is not None:
        results["last"]["test_accuracy"] = trainer.evaluate("test").top1
    if progress.best_epoch is not None:
        chosen = progress.history[progress.best_epoch - 1]
        results["best"] = {"weights": str(folder.best), "epoch": progress.best_epoch, **_figures(chosen)}
        if trainer.data.test is not None:
            best = load(folder.best).to(trainer.fabric.device)
            results["best"]["test_accuracy"] = trainer.evaluate("test", best).top1
    return results


def _figures(row: dict[str, float]) -> dict[str, float]:
    names = ("train_loss", "train_accuracy", "validation_accuracy")
    return {name: row[name] for name in names if name in row}


def _draw_curves(trainer: Trainer, folder: RunFolder) -> None:
    from spikformer.visualise.curves import draw_curves

    if trainer.fabric.is_global_zero and trainer.progress.history:
        draw_curves({folder.path.name: trainer.progress.history}, folder.curves)


def _say(sentence: str, trainer: Trainer) -> None:
    from rich.console import Console

    if trainer.fabric.is_global_zero:
        Console(stderr=True).print(sentence, highlight=False, soft_wrap=True, markup=False)
