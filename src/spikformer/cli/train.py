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

from spikformer.cli.arguments import parse_options
from spikformer.cli.results import draw_progress, measure_results, show_results
from spikformer.cli.terminal import say
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import DEFAULT, get_recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from spikformer.data import DataSet
    from spikformer.training import RunFolder, Trainer


@dataclass(frozen=True)
class Options:
    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[RECIPE]")] = DEFAULT
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
    """The recipe's name comes first, so that its settings are the defaults of the rest.

    Of a run that goes on, its own settings are: what differs from them was asked for, and is refused.
    """
    name = arguments[0] if arguments and not arguments[0].startswith("-") else DEFAULT
    options = _parsed(arguments, name, get_recipe(name))
    if options.recipe != name:
        raise ValueError(f"The recipe's name comes first: spikformer train {options.recipe} …, then its options.")
    if options.resume and options.overwrite:
        raise ValueError("--resume goes on with a run and --overwrite replaces it; give one of them.")
    folder = _folder(options)
    if not _resumes(options, folder):
        return options
    folder.check_saved()
    run = folder.read_description()
    if name not in (run["recipe"], DEFAULT):
        raise ValueError(f"The run in {folder.path} is one of {run['recipe']}, not of {name}; name that, or none.")
    own = folder.read_recipe()
    resumed = _parsed(arguments, name, own)
    if changed := _differences(resumed.settings, own):
        raise ValueError(
            f"The run in {folder.path} was started with {_listed(changed, own)}; resume it without changing settings, "
            "or start another."
        )
    data = options.data or (Path(run["data"]) if run["data"] else None)
    return replace(resumed, recipe=run["recipe"], data=data, output=folder.path, resume=True)


def _parsed(arguments: list[str], name: str, settings: Recipe) -> Options:
    arguments = _with_both_sides(arguments)
    default = Options(recipe=name, settings=settings)
    options: Options = parse_options(Options, "train", __doc__, arguments, default=default)
    return options


def _with_both_sides(arguments: list[str]) -> list[str]:
    """`--model.image-size 32` as 32 32, which its type cannot say."""
    option = "--model.image-size"
    arguments = [part for each in arguments for part in (each.split("=") if each.startswith(f"{option}=") else [each])]
    if option not in arguments:
        return arguments
    start = arguments.index(option) + 1
    end = next((place for place in range(start, len(arguments)) if arguments[place].startswith("--")), len(arguments))
    sides = arguments[start:end]
    if sides != ["None"] and not (len(sides) in (1, 2) and all(side.isdecimal() for side in sides)):
        raise ValueError(f"{option} must be an integer, two (height and width) or None, got {' '.join(sides)!r}.")
    return [*arguments[:start], *(sides * 2 if sides != ["None"] and len(sides) == 1 else sides), *arguments[end:]]


def _folder(options: Options) -> RunFolder:
    from spikformer.training import RunFolder

    return RunFolder(options.output or Path("runs") / options.recipe)


def _resumes(options: Options, folder: RunFolder) -> bool:
    """Torchrun starts a run anew when one of its processes dies; then, too, it goes on where it was."""
    from spikformer.training.devices import launch_id, was_restarted

    if options.resume or not was_restarted() or not folder.state.exists():
        return options.resume
    return folder.read_description()["launch"] == launch_id()  # else it is an older run that was refused


def _differences(one: Recipe, other: Recipe) -> list[str]:
    """Names of settings that differ, as they are given on the command line."""
    ours, theirs = _flat(one.to_dict()), _flat(other.to_dict())
    return [name for name, value in ours.items() if value != theirs[name]]


def _listed(names: list[str], recipe: Recipe) -> str:
    """Some settings as they are given on the command line."""
    values = _flat(recipe.to_dict())
    return ", ".join(f"--{name.replace('_', '-')} {values[name]}" for name in names)


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def run(options: Options) -> int:
    from spikformer.memory import keep_freed_memory
    from spikformer.training import build_fabric
    from spikformer.training.together import leave

    if options.workers < 0:
        raise ValueError(f"--workers must be at least 0, got {options.workers}.")
    if options.save_minutes < 0:
        raise ValueError(f"--save-minutes must be at least 0, got {options.save_minutes:g}.")
    if options.resume and options.from_weights is not None:
        raise ValueError("--from starts a run and --resume goes on with one; give one of them.")
    keep_freed_memory()
    precision = options.settings.precision
    fabric = build_fabric(precision, accelerator=options.accelerator, devices=options.devices, nodes=options.nodes)
    try:
        code = _run(options, fabric)
        fabric.barrier()  # a process that ends at once would have the others ended before they are done
        return code
    except RuntimeError as error:
        if fabric.world_size == 1 or ("gloo" not in str(error) and "NCCL" not in str(error)):
            raise
        raise OSError("Another process of this run ended; what it said, or --resume, may help.") from None
    finally:
        leave()


def _run(options: Options, fabric: Fabric) -> int:
    from spikformer.training import DivergedError, Trainer

    folder = _folder(options)
    recipe, data = _open_data(options, fabric)
    trainer = Trainer(
        recipe,
        data,
        fabric,
        state_path=folder.state,
        workers=options.workers,
        strict=options.strict,
        save_seconds=60 * options.save_minutes,
    )
    notes = _prepare(options, trainer, folder)
    try:
        _train(options, trainer, folder, notes)
    except DivergedError as end:
        return _end_early(str(end), trainer, folder)
    if trainer.stopped:
        epoch = trainer.progress.epoch + 1
        return _end_early(
            f"Stopped in epoch {epoch}, saved; go on with --resume --output {folder.path}", trainer, folder
        )
    results = measure_results(trainer, folder)
    draw_progress(trainer, folder)
    if fabric.is_global_zero and options.json:
        print(json.dumps(results | {"notes": notes}))
    elif fabric.is_global_zero:
        show_results(results)
    return 0


def _open_data(options: Options, fabric: Fabric) -> tuple[Recipe, DataSet]:
    """The data in the model's form, and the recipe with a model for as many classes and channels."""
    from spikformer.data import open_for_model, options_of

    recipe = options.settings
    # Of a run that goes on nothing was overridden; of another, what differs from its recipe.
    overridden = set() if options.resume else set(_differences(recipe, get_recipe(options.recipe)))
    if "validation_share" in overridden and "validation_share" not in options_of(recipe.data_set):
        raise ValueError(f"{recipe.data_set} has a validation split of its own; leave --validation-share out.")
    if not fabric.is_global_zero:
        fabric.barrier()  # the first process downloads and unpacks for all
    data = open_for_model(recipe.model, recipe.data_set, options.data, validation_share=recipe.validation_share)
    if fabric.is_global_zero:
        fabric.barrier()
    decided = {"num_classes": len(data.class_names), "in_channels": data.channels}
    for name, value in decided.items():
        if f"model.{name}" in overridden and getattr(recipe.model, name) != value:
            given = getattr(recipe.model, name)
            raise ValueError(f"--model.{name.replace('_', '-')} is {given}, but {data.name} has {value}; leave it out.")
    return replace(recipe, model=recipe.model.override(**decided)), data


def _prepare(options: Options, trainer: Trainer, folder: RunFolder) -> list[str]:
    """Everything that can go wrong before the first step; returns what is to be said."""
    from spikformer.models import load
    from spikformer.training import find_traps, transfer_weights

    name, main = options.recipe, trainer.fabric.is_global_zero
    notes = find_traps(trainer.recipe, get_recipe(name), trainer.data)
    trainer.model.card = replace(trainer.model.card, recipe=name, settings=trainer.recipe.to_dict())
    if options.resume:
        folder.check_same_data(trainer.data)
        if main:
            folder.claim()
            folder.check_room(trainer.model)
        trainer.start(folder.open_saved())
        if main:
            folder.note_resumption()
        return notes
    if options.from_weights is not None:
        notes.append(f"{options.from_weights}: {transfer_weights(load(options.from_weights), trainer.model)}.")
    elif name.endswith("_transfer"):
        raise ValueError(f"{name} starts from ImageNet weights; give them with --from.")
    if main:
        folder.open_new(overwrite=options.overwrite)
        folder.check_room(trainer.model)
        folder.describe(trainer.recipe, name, options.data, trainer.data)
    trainer.start()
    return notes


def _train(options: Options, trainer: Trainer, folder: RunFolder, notes: list[str]) -> None:
    from spikformer.cli.live import LiveLine, stop_on_signal
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
        if not options.resume:
            trainer.save()  # before the first weights: whatever a kill leaves can be resumed
        for event in trainer.run(stop):
            line.show(event)
            if isinstance(event, Epoch) and main:
                folder.keep(trainer.finished_model, trainer.progress.history, best=event.best)
                board.add(event.metrics)


def _end_early(sentence: str, trainer: Trainer, folder: RunFolder) -> int:
    draw_progress(trainer, folder)
    _say(sentence, trainer)
    return 1


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


def _say(sentence: str, trainer: Trainer) -> None:
    if trainer.fabric.is_global_zero:
        say(sentence, stderr=True)
