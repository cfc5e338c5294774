"""What training minimises: a recipe's loss of the labels, of a teacher's answers, and of the spikes it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.data import DataSet
from spikformer.errors import FieldError
from spikformer.models import SpikingNetwork
from spikformer.models.inspection import resized
from spikformer.training.losses import SynapticOperations, distillation_loss, mean_logit_loss, tet_loss
from spikformer.training.recipe import Recipe


class StepReadouts(nn.Module):
    """A network whose `forward` is `forward_steps`: wrappers, such as of several devices, know `forward` alone."""

    def __init__(self, model: SpikingNetwork) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.forward_steps(x)


def network_for(recipe: Recipe, model: SpikingNetwork) -> nn.Module:
    """What to call in training: it returns logits [B, K], or readouts [T, B, K] where the loss reads every step."""
    return StepReadouts(model) if recipe.loss == "tet" else model


class Objective:
    """A recipe's loss of a batch. `teacher` is a network that answers the same pictures, for distillation."""

    def __init__(
        self, recipe: Recipe, model: SpikingNetwork, data: DataSet, teacher: SpikingNetwork | None = None
    ) -> None:
        if data.events and (recipe.step_schedule or recipe.image_schedule):
            raise FieldError(
                "step_schedule" if recipe.step_schedule else "image_schedule",
                f"step_schedule and image_schedule are for pictures, and {data.name} has recordings of events, which "
                "bring their own steps; leave them out.",
            )
        if (teacher is None) != (recipe.distillation == 0):
            raise FieldError(
                "teacher", "Distillation takes a teacher and a recipe whose distillation is above 0; give both."
            )
        if teacher is not None:
            _check_teacher(teacher, model)
            teacher.eval().requires_grad_(False)
        self.recipe, self.model, self.teacher = recipe, model, teacher
        self._operations = SynapticOperations()

    def __call__(self, network: nn.Module, inputs: Tensor, targets: Tensor, epoch: float) -> tuple[Tensor, Tensor]:
        """Loss of inputs and targets [B, K], and the logits [B, K] by which the network answers.

        `network` is what `network_for` made of the model, in whatever wrapper; `epoch` counts with fractions.
        """
        recipe, operations = self.recipe, self._operations
        answers = None if self.teacher is None else self.teacher(inputs)
        with self._scheduled(int(epoch)) as size:
            if size is not None and inputs.shape[-2:] != size:
                inputs = F.interpolate(inputs, size, mode="bilinear", antialias=True)
            with operations.watch(self.model) if recipe.spike_penalty else nullcontext():
                outputs = network(inputs)
        loss, logits = loss_and_logits(recipe, outputs, targets, answers)
        if recipe.spike_penalty:
            loss = loss + penalty_weight(recipe, epoch) * operations.share()
        return loss, logits

    @contextmanager
    def _scheduled(self, epoch: int) -> Iterator[tuple[int, int] | None]:
        """The model as this epoch trains it, and the size of its pictures; None leaves them as they are."""
        recipe = self.recipe
        if not (recipe.step_schedule or recipe.image_schedule):
            yield None
            return
        size = recipe.image_size(epoch)
        with resized(self.model, recipe.time_steps(epoch), size):
            yield size


def _check_teacher(teacher: SpikingNetwork, model: SpikingNetwork) -> None:
    theirs, ours = teacher.config, model.config
    for name in ("num_classes", "in_channels", "image_size"):
        if getattr(theirs, name) != getattr(ours, name):
            raise FieldError(
                name,
                f"A teacher must answer the same pictures: its {name} is {getattr(theirs, name)}, the model's "
                f"{getattr(ours, name)}.",
            )
    if teacher.card.class_names not in ((), model.card.class_names):
        raise FieldError(
            "class_names", "A teacher must know the same classes in the same order; its card lists others."
        )


def loss_and_logits(
    recipe: Recipe, outputs: Tensor, targets: Tensor, teacher_logits: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The loss of what that network returned, and the logits [B, K] by which it answers.

    With a teacher it is (1 − α)·loss of the targets + α·loss of the teacher's logits [B, K]; α is `distillation`.
    """
    if recipe.loss == "tet":
        readouts, logits = outputs, outputs.mean(0)
        loss = tet_loss(outputs, targets, recipe.tet_lambda)
    else:
        readouts, logits = outputs[None], outputs
        loss = mean_logit_loss(outputs, targets)
    if teacher_logits is not None:
        share = recipe.distillation
        learnt = distillation_loss(readouts, teacher_logits, recipe.distillation_temperature)
        loss = (1 - share) * loss + share * learnt
    return loss, logits


def penalty_weight(recipe: Recipe, epoch: float) -> float:
    """The weight of the spike penalty, which rises in a line over the first `penalty_epochs`."""
    rise = min(1.0, epoch / recipe.penalty_epochs) if recipe.penalty_epochs else 1.0
    return recipe.spike_penalty * rise
