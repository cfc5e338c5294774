"""Train a model by a recipe, in a run folder that can be resumed.

run = sf.train("spikformer_tiny_digits", output="runs/digits", epochs=5, model={"time_steps": 2})
run.weights, run.metrics, run.results
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from spikformer.data import DataSet, open_for_model, options_of
from spikformer.data.splits import spread_samples
from spikformer.models import load
from spikformer.runs.folder import Checkpoint, Results, Run
from spikformer.runs.progress import Board, Event, Finished, Started, Stopped
from spikformer.runs.writer import RunWriter
from spikformer.training import DivergedError, Epoch, Iteration, Recipe, Trainer, build_fabric, transfer_weights
from spikformer.training.distributed import launch_id, shut_down, was_restarted
from spikformer.training.recipe import flat_settings
from spikformer.training.recipes import DEFAULT, get_recipe, pretrained_on, recipe_warnings
from spikformer.visualise.accuracy import draw_curves

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_DECIDED_BY_DATA = {"model.num_classes", "model.in_channels"}


@dataclass(frozen=True)
class _Plan:
    """What is to be trained, before any file is written."""

    name: str
    published: Recipe
    """What the settings were changed from."""
    recipe: Recipe
    data: Path | DataSet | None
    writer: RunWriter
    resume: bool

    @property
    def overridden(self) -> set[str]:
        return set() if self.resume else set(flat_settings(self.recipe.changes_from(self.published)))


def train(
    recipe: str | Recipe | None = None,
    *,
    data: str | Path | DataSet | None = None,
    output: str | Path | None = None,
    from_weights: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    workers: int = 0,
    strict: bool = False,
    accelerator: Literal["auto", "cpu", "gpu"] = "auto",
    devices: int | None = None,
    nodes: int = 1,
    save_minutes: float = 10.0,
    threads: int | None = None,
    on_event: Callable[[Event], object] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Run:
    """Train by a recipe, named or made; `overrides` are settings of it, see `Recipe.override`.

        data          folder or archive with the data set's files, or a data set of your own
        output        the run folder; runs/RECIPE by default
        from_weights  start from these weights, as far as they fit
        resume        continue the run in `output`, with its settings and data; only `epochs` may grow, and the learning
                      rate then follows the longer schedule from where the run is
        threads       of PyTorch, in each process; on a busy machine 1 may be fastest
        on_event      called on rank 0 with what happens: Started, Iteration, Epoch, Stopped, Finished
        stop          called after every iteration; True saves the state and ends training early

    Raises DivergedError if the loss or a weight becomes NaN or infinite; the last good state stays in the folder.
    """
    _check_counts(workers=workers, save_minutes=save_minutes)
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it; give one of them.")
    if resume and from_weights is not None:
        raise ValueError("--from starts a run and --resume continues one; give one of them.")
    if threads is not None:
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}.")
        torch.set_num_threads(threads)
    plan = _plan(recipe, data, output, resume=resume, overrides=overrides)
    fabric = build_fabric(plan.recipe.precision, accelerator=accelerator, devices=devices, nodes=nodes)
    report = on_event if on_event is not None and fabric.is_global_zero else lambda _: None
    try:
        resolved, opened = _open_data(plan, fabric)
        trainer = Trainer(
            resolved,
            opened,
            fabric,
            state_path=plan.writer.state,
            workers=workers,
            strict=strict,
            save_seconds=60 * save_minutes,
        )
        warnings = _prepare(plan, trainer, None if from_weights is None else Path(from_weights), overwrite=overwrite)
        report(Started.of(trainer, plan.writer.path, plan.name, warnings))
        _run(plan, trainer, warnings, report, stop)
        fabric.barrier()  # a process that ends earlier would take the others down with it
        return Run(plan.writer.path)
    except RuntimeError as error:
        # Neither gloo nor NCCL has an error type of its own for a peer that is gone.
        if fabric.world_size == 1 or ("gloo" not in str(error) and "NCCL" not in str(error)):
            raise
        raise OSError("Another process of this run ended; see its message, or try --resume.") from None
    finally:
        plan.writer.release()
        shut_down()


def _check_counts(**counts: float) -> None:
    for name, value in counts.items():
        if value < 0:
            raise ValueError(f"{name} must be at least 0, got {value:g}.")


def _plan(
    recipe: str | Recipe | None,
    data: str | Path | DataSet | None,
    output: str | Path | None,
    *,
    resume: bool,
    overrides: dict[str, Any],
) -> _Plan:
    data = Path(data) if isinstance(data, str) else data
    if isinstance(recipe, Recipe):
        name, published = "custom", recipe
        if output is None:
            raise ValueError("A recipe without a name needs an output folder; pass output=….")
    else:
        name = recipe or DEFAULT
        published = get_recipe(name)
    writer = RunWriter(output if output is not None else Path("runs") / name)
    if not resume and not _restarted(writer):
        return _Plan(name, published, published.override(**overrides), data, writer, resume=False)
    writer.check_saved()
    began, own = writer.description, writer.recipe
    if recipe is not None and name != began.recipe:
        raise ValueError(f"The run in {writer.path} is one of {began.recipe}, not {name}; leave the recipe out.")
    longer = overrides.pop("epochs", own.epochs)
    if longer < own.epochs:
        raise ValueError(f"The run in {writer.path} has {own.epochs} epochs, got {longer}; it can only have more.")
    changed = flat_settings(own.override(**overrides).changes_from(own))
    if changed := {setting: value for setting, value in changed.items() if setting not in _DECIDED_BY_DATA}:
        raise ValueError(
            f"The run in {writer.path} was started with {_listed(changed, own)}; resume it with the same settings, or "
            "start another."
        )
    where = data if data is not None else (Path(began.data) if began.data else None)
    published = own if isinstance(recipe, Recipe) or began.recipe == "custom" else get_recipe(began.recipe)
    return _Plan(began.recipe, published, own.override(epochs=longer), where, writer, resume=True)


def _restarted(run: Run) -> bool:
    """Torchrun starts the command again when one of its processes dies; then the run of its first start is resumed."""
    return was_restarted() and run.state.exists() and run.description.launch == launch_id()


def _listed(names: dict[str, Any], recipe: Recipe) -> str:
    values = flat_settings(recipe.to_dict())
    return ", ".join(f"{name} {values[name]}" for name in names)


def _open_data(plan: _Plan, fabric: Fabric) -> tuple[Recipe, DataSet]:
    """The data in the model's form, and the recipe with a model for as many classes and channels."""
    recipe, overridden = plan.recipe, plan.overridden
    if "validation_share" in overridden and "validation_share" not in options_of(recipe.data_set):
        raise ValueError(f"{recipe.data_set} has a validation split of its own; leave validation_share out.")
    if isinstance(plan.data, DataSet):
        data = plan.data
    else:
        if not fabric.is_global_zero:
            fabric.barrier()  # rank 0 downloads and unpacks for all
        data = open_for_model(recipe.model, recipe.data_set, plan.data, validation_share=recipe.validation_share)
        if fabric.is_global_zero:
            fabric.barrier()
    if recipe.max_samples is not None:
        data = data.with_split("train", spread_samples(data.split("train"), recipe.max_samples))
    decided = {"num_classes": len(data.class_names), "in_channels": data.channels}
    for name, value in decided.items():
        if f"model.{name}" in overridden and getattr(recipe.model, name) != value:
            given = getattr(recipe.model, name)
            raise ValueError(f"model.{name} is {given}, but {data.name} has {value}; leave it out.")
    return replace(recipe, model=recipe.model.override(**decided)), data


def _prepare(plan: _Plan, trainer: Trainer, from_weights: Path | None, *, overwrite: bool) -> list[str]:
    """Everything that can go wrong before the first iteration; returns what the user should know."""
    writer, rank0 = plan.writer, trainer.fabric.is_global_zero
    warnings = recipe_warnings(trainer.recipe, plan.published, trainer.data)
    trainer.model.card = replace(trainer.model.card, recipe=plan.name, settings=trainer.recipe.to_dict())
    if plan.resume:
        writer.check_same_data(trainer.data)
        if rank0:
            writer.claim()
            writer.check_room(trainer.model)
        trainer.start(writer.open_saved())
        if rank0:
            writer.note_resumption()
            if trainer.recipe.epochs != writer.recipe.epochs:
                settings = trainer.recipe.to_dict()
                writer.write_description(replace(writer.description, settings=settings))
        return warnings
    if from_weights is not None:
        warnings.append(f"{from_weights}: {transfer_weights(load(from_weights), trainer.model)}.")
    elif plan.name != "custom" and (source := pretrained_on(plan.name)):
        raise ValueError(f"{plan.name} starts from weights trained on {source}; give them with --from.")
    if rank0:
        writer.open_new(overwrite=overwrite)
        writer.check_room(trainer.model)
        where = None if isinstance(plan.data, DataSet) else plan.data
        writer.describe(trainer.recipe, plan.name, where, trainer.data)
    trainer.start()
    return warnings


def _run(
    plan: _Plan,
    trainer: Trainer,
    warnings: list[str],
    report: Callable[[Event], object],
    stop: Callable[[], bool],
) -> None:
    writer, rank0 = plan.writer, trainer.fabric.is_global_zero
    if not plan.resume:
        trainer.save()  # before the first weights: whatever a kill leaves can be resumed
    try:
        with Board(writer.path / "tensorboard", trainer.progress, enabled=rank0) as board:
            for event in trainer.run(stop):
                if isinstance(event, Iteration):
                    board.add_iteration(event)
                if isinstance(event, Epoch) and rank0:
                    writer.keep(trainer.finished_model, trainer.progress.history, best=event.best)
                    board.add(event.metrics)
                    board.add_firing(trainer.finished_model, trainer.data, event.number)
                report(event)
    except DivergedError:
        _draw_curves(trainer, writer)
        raise
    if trainer.stopped:
        _draw_curves(trainer, writer)
        report(Stopped(writer.path, trainer.progress.epoch + 1))
        return
    results = _measure(trainer, writer)
    if rank0:
        writer.keep_results(results)
    _draw_curves(trainer, writer)
    report(Finished(writer.path, results, warnings))


def _measure(trainer: Trainer, run: Run) -> Results:
    """The last epoch, and the one that validation chose, both on the test split."""
    progress, silent = trainer.progress, trainer.silent
    trainer.fabric.barrier()
    last, best = Checkpoint.of_epoch(progress.history[-1]), None
    if trainer.data.test is not None:
        found = trainer.evaluate("test")
        last, silent = replace(last, test_accuracy=found.top1), found.silent
    if progress.best_epoch is not None:
        best = Checkpoint.of_epoch(progress.history[progress.best_epoch - 1])
        if trainer.data.test is not None:
            model = load(run.best).to(trainer.fabric.device)
            best = replace(best, test_accuracy=trainer.evaluate("test", model).top1)
    return Results(last, best, progress.seconds, progress.unreadable, silent)


def _draw_curves(trainer: Trainer, run: Run) -> None:
    if trainer.fabric.is_global_zero and trainer.progress.history:
        draw_curves({run.path.name: trainer.progress.history}, run.curves)
