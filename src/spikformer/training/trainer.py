"""Trainer: a recipe at work on a data set, on one device or many, iteration by iteration, resumable at any of them.

It knows nothing of consoles and run folders: it yields what happened, and is given the path of its state.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from spikformer.data import DataSet, Loader
from spikformer.data.augmentation import Augmenter, mirrored_in
from spikformer.data.loader import Batch
from spikformer.errors import FieldError, FileError
from spikformer.layers.sync_norm import sync_norms
from spikformer.models import SpikingNetwork, build_model
from spikformer.training.distributed import any_rank, broadcast_from_rank0, sum_over_ranks
from spikformer.training.evaluation import EvalOptions, Evaluation, evaluate
from spikformer.training.objective import Objective, network_for
from spikformer.training.optim import WeightAverage, build_optimiser, learning_rate, set_learning_rate
from spikformer.training.progress import DivergedError, Epoch, Iteration, Progress
from spikformer.training.recipe import Recipe
from spikformer.training.start import freeze, whiten
from spikformer.training.state import SavedState, save_state

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class Trainer:
    """A model in training: a new one that the recipe describes, or the `model` that is given.

    `model` holds its weights, `average` their moving average if the recipe keeps one. A recipe with distillation needs
    a `teacher`.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: DataSet,
        fabric: Fabric,
        model: SpikingNetwork | None = None,
        *,
        teacher: SpikingNetwork | None = None,
        state_path: Path | None = None,
        workers: int = 0,
        strict: bool = False,
        save_seconds: float = 600.0,
    ) -> None:
        self.recipe, self.data, self.fabric = recipe, data, fabric
        self.state_path, self.workers, self.strict, self.save_seconds = state_path, workers, strict, save_seconds
        self.progress = Progress()
        self._counted = 0  # unreadable samples that `progress` has counted
        self._last_rate = 0.0
        self.stopped = False
        """`stop` returned True, and the state is saved."""
        self.silent = False
        """At the last validation, no spike reached the head."""
        torch.manual_seed(recipe.seed)
        if model is not None and model.config != recipe.model:
            message = "The model's config must be the recipe's; pass recipe.override(model=model.config)."
            raise FieldError("model", message)
        self.model = build_model(recipe.model) if model is None else model
        self.model.card = data.card(self.model.card.architecture)
        freeze(self.model, recipe.freeze)
        self._objective = Objective(recipe, self.model, data, teacher)
        self._augment = Augmenter(recipe.augmentation, data)
        self._loader = Loader(
            data,
            "train",
            self._part_size(),
            training=True,
            seed=recipe.seed,
            workers=workers,
            pin_memory=fabric.device.type == "cuda",
            rank=fabric.global_rank,
            world_size=fabric.world_size,
            strict=strict,
            repeats=recipe.augmentation.repeats,
        )
        self.iterations_per_epoch = len(self._loader) // recipe.accumulate
        if not self.iterations_per_epoch:
            raise FieldError(
                "batch_size",
                f"Training needs at least one batch of {recipe.batch_size} samples, but {data.name} has "
                f"{len(data.split('train'))} for train.",
            )

    def start(self, saved: SavedState | None = None) -> None:
        """Move everything to the device, wrap it, and restore a saved state."""
        recipe = self.recipe
        if recipe.sync_norms and self.fabric.world_size > 1:
            sync_norms(self.model)
        if recipe.whiten and saved is None:
            whiten(self.model, self.data)
        self.model.to(self.fabric.device)
        if self._objective.teacher is not None:
            self._objective.teacher.to(self.fabric.device)
        self._average = WeightAverage(self.model, recipe.ema_decay) if recipe.ema_decay else None
        self._optimiser = build_optimiser(self.model, recipe.weight_decay, recipe.optimiser)
        if saved is not None:
            saved.restore(self.model, self._optimiser, self.average)
            self.progress = saved.progress
            self._keep_sums_on_rank0()
        network = network_for(recipe, self.model)
        compiled = cast(nn.Module, torch.compile(network)) if recipe.compile else network
        self._network, self._fabric_optimiser = self.fabric.setup(compiled, self._optimiser)
        self._scaler = getattr(self.fabric._precision, "scaler", None)
        if self._scaler is not None and saved is not None and saved.scaler is not None:
            try:
                self._scaler.load_state_dict(saved.scaler)
            except (KeyError, RuntimeError):
                raise FileError(
                    saved.path, "has a damaged loss scaler; start again with --overwrite.", at="scaler"
                ) from None

    @property
    def average(self) -> SpikingNetwork | None:
        return self._average.model if self._average else None

    @property
    def finished_model(self) -> SpikingNetwork:
        """What is validated, tested and saved."""
        return self.average or self.model

    def run(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Iteration | Epoch]:
        """Train to the end of the recipe, or until `stop`, called after every iteration, returns True."""
        while self.progress.epoch < self.recipe.total_epochs and not self.stopped:
            if self.progress.without_gain_for(self.recipe.patience):
                return
            yield from self._run_epoch(stop)

    def evaluate(self, split: str, model: SpikingNetwork | None = None) -> Evaluation:
        options = EvalOptions(
            batch_size=self._part_size(),
            workers=self.workers,
            strict=self.strict,
            rank=self.fabric.global_rank,
            world_size=self.fabric.world_size,
        )
        return evaluate(model or self.finished_model, self.data, split, options)

    def save(self) -> None:
        """Write the state, on rank 0 alone; NaN or infinite weights never replace good ones."""
        self._check_finite()
        if self.state_path is not None and self.fabric.is_global_zero:
            scaler = self._scaler.state_dict() if self._scaler is not None else None
            recipe = self.recipe.to_dict()
            save_state(self.state_path, recipe, self.progress, self.model, self._optimiser, self.average, scaler)

    # One epoch, one iteration.

    def _run_epoch(self, stop: Callable[[], bool]) -> Iterator[Iteration | Epoch]:
        recipe, progress = self.recipe, self.progress
        self.model.train()
        started = saved_at = time.perf_counter()
        parts = self._loader.epoch(progress.epoch, progress.batch * recipe.accumulate)
        while progress.batch < self.iterations_per_epoch:
            before = time.perf_counter()
            rate = learning_rate(recipe, self._exact_epoch())
            loss, correct, count = self._iterate(parts, rate)
            progress.batch, progress.iteration = progress.batch + 1, progress.iteration + 1
            now = time.perf_counter()
            due = now - saved_at >= self.save_seconds
            diverged, self.stopped, due = any_rank(self.fabric, not math.isfinite(loss), stop(), due)
            self._last_rate = rate
            if diverged:
                raise DivergedError.at(self.progress, self._last_rate, self.state_path)
            progress.loss_sum += loss * count
            progress.num_correct, progress.num_samples = progress.num_correct + correct, progress.num_samples + count
            progress.seconds += now - started
            progress.epoch_seconds += now - started
            started = now
            if self.stopped or due:
                self._gather()
                self.save()
                saved_at = now
            if self.stopped:
                return
            speed = count * self.fabric.world_size / (now - before)
            yield self._iteration(loss, rate, speed)
        for _ in parts:  # a remainder smaller than a batch; workers must end their epoch
            pass
        self._check_finite()
        yield self._end_epoch()
        self.save()  # after what the caller keeps of the epoch: a kill in between repeats it

    def _iterate(self, parts: Iterator[Batch], rate: float) -> tuple[float, int, int]:
        """One iteration of the optimiser: mean loss, correct answers and number of this process's samples."""
        recipe, progress = self.recipe, self.progress
        set_learning_rate(self._optimiser, rate)
        mean_loss, correct, count = 0.0, 0, 0
        for part in range(recipe.accumulate):
            batch = next(parts)
            inputs, targets = self._prepared(batch, progress.batch * recipe.accumulate + part)
            with self.fabric.no_backward_sync(self._network, enabled=part + 1 < recipe.accumulate):
                loss, logits = self._objective(self._network, inputs, targets, self._exact_epoch())
                self.fabric.backward(loss / recipe.accumulate)
            mean_loss += loss.item() / recipe.accumulate
            correct += int((logits.argmax(1) == batch.labels.to(logits.device)).sum())
            count += len(batch.labels)
        if recipe.clip_gradient is not None:
            norm = recipe.clip_gradient  # NaN gradients show in the next loss
            self.fabric.clip_gradients(self._network, self._fabric_optimiser, max_norm=norm, error_if_nonfinite=False)
        self._fabric_optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        if self._average:
            self._average.update(self.model, progress.iteration)
        return mean_loss, correct, count

    def _prepared(self, batch: Batch, part: int) -> tuple[Tensor, Tensor]:
        """Augmented by seed, epoch, part and process, and nothing else."""
        seed = [self.recipe.seed, self.progress.epoch, part, self.fabric.global_rank]
        samples, labels = self.fabric.to_device(batch.samples), self.fabric.to_device(batch.labels)
        mix = self.recipe.mixes(self.progress.epoch)
        turns = mirrored_in(self.progress.epoch, batch.indices, self.recipe.seed)
        inputs, targets = self._augment(samples, labels, np.random.default_rng(seed), mix=mix, turns=turns)
        dtype = self.model.like.dtype
        return inputs.to(dtype), targets.to(dtype)

    def _exact_epoch(self) -> float:
        return self.progress.epoch + self.progress.batch / self.iterations_per_epoch

    def _iteration(self, loss: float, rate: float, speed: float) -> Iteration:
        progress = self.progress
        count = max(progress.num_samples, 1)
        return Iteration(
            number=progress.iteration,
            epoch=progress.epoch + 1,
            batch=progress.batch,
            num_batches=self.iterations_per_epoch,
            loss=loss,
            learning_rate=rate,
            samples_per_second=speed,
            mean_loss=progress.loss_sum / count,
            mean_accuracy=progress.num_correct / count,
        )

    def _end_epoch(self) -> Epoch:
        progress = self.progress
        self._gather()
        models = (self.model, self.average) if self.average else (self.model,)
        broadcast_from_rank0(self.fabric, (buffer for model in models for buffer in model.buffers()))
        metrics = {
            "epoch": progress.epoch + 1,
            "learning_rate": learning_rate(self.recipe, progress.epoch + 1 - 1 / self.iterations_per_epoch),
            "train_loss": progress.loss_sum / max(progress.num_samples, 1),
            "train_accuracy": progress.num_correct / max(progress.num_samples, 1),
            "samples_per_second": progress.num_samples / max(progress.epoch_seconds, 1e-9),
            "unreadable": progress.unreadable,
        }
        if self.data.validation is not None:
            validation = self.evaluate("validation")
            self.silent = validation.silent
            metrics |= {"validation_loss": validation.loss, "validation_accuracy": validation.top1}
        metrics["seconds"] = progress.seconds
        best = progress.finish_epoch(metrics)
        return Epoch(progress.epoch, metrics, best)

    def _part_size(self) -> int:
        """Samples that one process takes at once."""
        parts = self.fabric.world_size * self.recipe.accumulate
        if self.recipe.batch_size % parts:
            given = f"{self.recipe.batch_size} for {self.fabric.world_size} × {self.recipe.accumulate}"
            message = f"batch_size must be a multiple of devices times accumulate, got {given}."
            raise FieldError("batch_size", message)
        return self.recipe.batch_size // parts

    def _gather(self) -> None:
        """Add up the sums of the epoch so far; afterwards rank 0 holds them."""
        progress = self.progress
        failed = self._loader.unreadable.total()
        progress.unreadable += failed - self._counted
        self._counted = failed
        sums = (progress.loss_sum, progress.num_correct, progress.num_samples, progress.unreadable)
        progress.set_sums(*sum_over_ranks(self.fabric, sums))
        self._keep_sums_on_rank0()

    def _keep_sums_on_rank0(self) -> None:
        if not self.fabric.is_global_zero:
            self.progress.set_sums(0, 0, 0, 0)

    def _check_finite(self) -> None:
        """An iteration may ruin the weights, or a norm's statistics, while its own loss is still finite."""
        tensors = (tensor for tensor in self.model.state_dict().values() if tensor.is_floating_point())
        finite = all(bool(tensor.isfinite().all()) for tensor in tensors)
        if any(any_rank(self.fabric, not finite)):  # statistics that are not synchronised may be ruined on one rank
            raise DivergedError.at(self.progress, self._last_rate, self.state_path)
