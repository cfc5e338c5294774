"""Train a model by a recipe, in a run folder.

    run = sf.train("spikformer_tiny_digits", output="runs/digits", epochs=5, model={"time_steps": 2})
    run = sf.train("spikformer_tiny_digits", output="runs/own", model=network)
    run.weights, run.metrics, run.results

A run that was interrupted can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from spikformer.data import DataSet
from spikformer.errors import FieldError, printable
from spikformer.models import load
from spikformer.runs.folder import Checkpoint, Results, Run
from spikformer.runs.plan import Plan, fitting, make_plan, open_planned, own_network
from spikformer.runs.progress import Board, Event, Finished, Started, Stopped
from spikformer.runs.trained import weights_path
from spikformer.training import DivergedError, Epoch, Iteration, Recipe, Trainer, build_fabric, transfer_weights
from spikformer.training.distributed import is_lost_peer, shut_down
from spikformer.training.recipes import pretrained_on, recipe_warnings
from spikformer.validation import Accelerator, check_at_least
from spikformer.visualise.accuracy import draw_curves


def train(
    recipe: str | Recipe | None = None,
    *,
    data: str | Path | DataSet | None = None,
    output: str | Path | None = None,
    from_weights: str | Path | None = None,
    teacher: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    workers: int = 0,
    strict: bool = False,
    accelerator: Accelerator = "auto",
    devices: int | None = None,
    nodes: int = 1,
    save_minutes: float = 10.0,
    threads: int | None = None,
    on_event: Callable[[Event], object] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Run:
    """Train by a recipe, named or made; `overrides` are settings of it, see `Recipe.override`.

        model         settings of the network, the config of any other, or a network of your own to train
        data          folder or archive with the data set's files, or a data set of your own
        output        the run folder; runs/RECIPE by default
        from_weights  start from these weights, a run folder or a shipped name, as far as they fit
        teacher       the same to learn from beside the labels, see `Recipe.distillation`
        resume        continue the run in `output`, with its settings and data; only `epochs` may grow, and the learning
                      rate then follows the longer schedule from where the run is
        threads       of PyTorch, in each process; on a busy machine 1 may be fastest
        on_event      called on rank 0 with what happens: Started, Iteration, Epoch, Stopped, Finished
        stop          called after every iteration; True saves the state and ends training early

    Raises DivergedError if the loss or a weight becomes NaN or infinite; the last good state stays in the folder.
    """
    for name, value, least in (("workers", workers, 0), ("save_minutes", save_minutes, 0), ("threads", threads, 1)):
        check_at_least(name, value, least)
    if resume and overwrite:
        raise FieldError("resume", "--resume continues a run and --overwrite replaces it; give one of them.")
    if resume and from_weights is not None:
        raise FieldError("from_weights", "--from starts a run and --resume continues one; give one of them.")
    if threads is not None:
        torch.set_num_threads(threads)
    network = own_network(overrides)
    if network is not None and from_weights is not None:
        raise FieldError(
            "from_weights", "A network of your own has its weights; leave from_weights out, or fill it yourself."
        )
    plan = make_plan(recipe, data, output, resume=resume, overrides=overrides, teacher=teacher)
    fabric = build_fabric(plan.recipe.precision, accelerator=accelerator, devices=devices, nodes=nodes)
    report = on_event if on_event is not None and fabric.is_global_zero else lambda _: None
    try:
        resolved, opened = open_planned(plan, fabric)
        trainer = Trainer(
            resolved,
            opened,
            fabric,
            fitting(network, resolved, opened),
            teacher=None if plan.teacher is None else load(plan.teacher),
            state_path=plan.writer.state,
            workers=workers,
            strict=strict,
            save_seconds=60 * save_minutes,
        )
        warnings = _prepare(
            plan, trainer, None if from_weights is None else weights_path(from_weights), overwrite=overwrite
        )
        report(Started.of(trainer, plan.writer.path, plan.name, warnings))
        _run(plan, trainer, warnings, report, stop)
        fabric.barrier()  # a process that ends earlier would take the others down with it
        return Run(plan.writer.path)
    except RuntimeError as error:
        if fabric.world_size == 1 or not is_lost_peer(error):
            raise
        reason = printable(error, 200)
        raise OSError(
            f"Another process of this run ended or cannot be reached; see its message, or try --resume. ({reason})"
        ) from None
    finally:
        plan.writer.release()
        shut_down()


def _prepare(plan: Plan, trainer: Trainer, from_weights: Path | None, *, overwrite: bool) -> list[str]:
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
        raise FieldError("from_weights", f"{plan.name} starts from weights trained on {source}; give them with --from.")
    if rank0:
        writer.open_new(overwrite=overwrite)
        writer.check_room(trainer.model)
        where = None if isinstance(plan.data, DataSet) else plan.data
        writer.describe(trainer.recipe, plan.name, where, trainer.data, plan.teacher)
    trainer.start()
    return warnings


def _run(
    plan: Plan,
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
        writer.note_on_cards(results)
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
