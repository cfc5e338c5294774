"""What is to be trained: the recipe with its overrides, the network and the data, before any file is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from spikformer.data import DataOptions, DataSet, open_for_model, options_of
from spikformer.data.splits import spread_samples
from spikformer.errors import FieldError, FileError
from spikformer.models import SpikingNetwork
from spikformer.models.inspection import check_as_configured, unwrap
from spikformer.runs.folder import Run
from spikformer.runs.trained import weights_path
from spikformer.runs.writer import RunWriter
from spikformer.training import Recipe
from spikformer.training.distributed import launch_id, was_restarted
from spikformer.training.recipe import flat_settings
from spikformer.training.recipes import DEFAULT, get_recipe
from spikformer.training.variations import TEACHERS_SHARE

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Plan:
    """What is to be trained, before any file is written."""

    name: str
    published: Recipe
    """What the settings were changed from."""
    recipe: Recipe
    data: Path | DataSet | None
    writer: RunWriter
    resume: bool
    teacher: Path | None = None

    @property
    def overridden(self) -> set[str]:
        return set() if self.resume else set(flat_settings(self.recipe.changes_from(self.published)))


def make_plan(
    recipe: str | Recipe | None,
    data: str | Path | DataSet | None,
    output: str | Path | None,
    *,
    resume: bool,
    overrides: dict[str, Any],
    teacher: str | Path | None = None,
) -> Plan:
    data = Path(data) if isinstance(data, str) else data
    if isinstance(recipe, Recipe):
        name, published = "custom", recipe
        if output is None:
            raise FieldError("output", "A recipe without a name needs an output folder; pass output=….")
    else:
        name = recipe or DEFAULT
        published = get_recipe(name)
    writer = RunWriter(output if output is not None else Path("runs") / name)
    if not resume and not _restarted(writer):
        planned = published.override(**_with_share(published, overrides, teacher))
        return Plan(name, published, planned, data, writer, resume=False, teacher=_as_weights(teacher))
    writer.check_saved()
    began, own = writer.description, writer.recipe
    if recipe is not None and name != began.recipe:
        raise FieldError(
            "recipe", f"The run in {writer.path} is one of {began.recipe}, not {name}; leave the recipe out."
        )
    longer = overrides.pop("epochs", own.epochs)
    if longer < own.epochs:
        raise FieldError(
            "epochs", f"The run in {writer.path} has {own.epochs} epochs, got {longer}; it can only have more."
        )
    if other := own.settings_unlike(own.override(**overrides)):
        began_with = ", ".join(f"{name} {value}" for name, value in other.items())
        raise FileError(
            writer.path,
            f"was started with {began_with}; resume it with the same settings, or start another run.",
            "unfit",
        )
    where = data if data is not None else (Path(began.data) if began.data else None)
    published = own if isinstance(recipe, Recipe) or began.recipe == "custom" else get_recipe(began.recipe)
    taught = _as_weights(teacher if teacher is not None else began.teacher)
    return Plan(began.recipe, published, own.override(epochs=longer), where, writer, resume=True, teacher=taught)


def _as_weights(path: str | Path | None) -> Path | None:
    return None if path is None else weights_path(path)


def _with_share(published: Recipe, overrides: dict[str, Any], teacher: str | Path | None) -> dict[str, Any]:
    """A teacher's answers count half unless the recipe, or the user, says otherwise."""
    share = overrides.get("distillation", published.distillation)
    if teacher is None and share:
        raise FieldError("teacher", "This recipe learns from a teacher; give its weights with --teacher.")
    return overrides if teacher is None or share else overrides | {"distillation": TEACHERS_SHARE}


def _restarted(run: Run) -> bool:
    """Torchrun starts the command again when one of its processes dies; then the run of its first start is resumed."""
    return was_restarted() and run.state.exists() and run.description.launch == launch_id()


def open_planned(plan: Plan, fabric: Fabric) -> tuple[Recipe, DataSet]:
    """The data in the model's form, and the recipe with a model for as many classes and channels."""
    recipe, overridden = plan.recipe, plan.overridden
    if "validation_share" in overridden and "validation_share" not in options_of(recipe.data_set):
        raise FieldError(
            "validation_share", f"{recipe.data_set} has a validation split of its own; leave validation_share out."
        )
    if isinstance(plan.data, DataSet):
        data = plan.data
        if given := recipe.preprocessing.given():
            raise FieldError(
                next(iter(given)), f"A data set of your own has its preprocessing; leave {', '.join(given)} out."
            )
    else:
        if not fabric.is_global_zero:
            fabric.barrier()  # rank 0 downloads and unpacks for all
        options = DataOptions(**recipe.preprocessing.given())
        share = recipe.validation_share
        data = open_for_model(recipe.model, recipe.data_set, plan.data, options, validation_share=share)
        if fabric.is_global_zero:
            fabric.barrier()
    if recipe.max_samples is not None:
        data = data.with_split("train", spread_samples(data.split("train"), recipe.max_samples))
    decided = {"num_classes": len(data.class_names), "in_channels": data.channels}
    for name, value in decided.items():
        if f"model.{name}" in overridden and getattr(recipe.model, name) != value:
            given = getattr(recipe.model, name)
            raise FieldError(f"model.{name}", f"model.{name} is {given}, but {data.name} has {value}; leave it out.")
    return replace(recipe, model=recipe.model.override(**decided)), data


def own_network(overrides: dict[str, Any]) -> SpikingNetwork | None:
    """A network given as `model`, in whose place its config becomes the setting."""
    given = overrides.get("model")
    if not isinstance(given, nn.Module):
        return None
    network = unwrap(given, "train")
    check_as_configured(network, "train")  # else its weights could not be saved, at the end of the first epoch
    overrides["model"] = network.config
    return network


def fitting(network: SpikingNetwork | None, recipe: Recipe, data: DataSet) -> SpikingNetwork | None:
    if network is not None and network.config != recipe.model:
        raise FieldError(
            "model",
            f"The network has {network.config.num_classes} outputs for {network.config.in_channels} channels, but "
            f"{data.name} has {len(data.class_names)} classes and {data.channels} channels; call reset_classifier, or "
            "build it for this data.",
        )
    return network
