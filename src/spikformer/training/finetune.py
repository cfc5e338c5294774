"""Fine-tuning: start from the weights of another model, as far as they fit, and freeze parts of a model."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from torch import nn

from spikformer.models import SpikingNetwork


class Transfer(NamedTuple):
    """Names of tensors, by what became of them."""

    loaded: tuple[str, ...]
    new: tuple[str, ...]
    """In the model alone, or of another shape than in the source."""
    unused: tuple[str, ...]
    """In the source alone."""

    def __str__(self) -> str:
        parts = [f"{len(self.loaded)} tensors were loaded"]
        parts += [f"{len(self.new)} are new ({_listed(self.new)})"] if self.new else []
        parts += [f"{len(self.unused)} were not used ({_listed(self.unused)})"] if self.unused else []
        return ", ".join(parts)


def transfer_weights(source: SpikingNetwork, model: SpikingNetwork) -> Transfer:
    """Copy every tensor of the source whose name and shape the model has; the head is always new for new classes."""
    theirs, ours = source.state_dict(), model.state_dict()
    # Weights that name no classes, as imported ones, keep their head if it has as many.
    same_classes = source.card.class_names in ((), model.card.class_names)
    loaded = [
        name
        for name, tensor in ours.items()
        if name in theirs and theirs[name].shape == tensor.shape and (same_classes or not name.startswith("head."))
    ]
    if not any(name.startswith(("stem.", "blocks.")) and ours[name].ndim > 1 for name in loaded):
        raise ValueError("The weights share no layer with this model: its width and channels must be alike.")
    for name in loaded:
        ours[name].copy_(theirs[name])
    new, unused = (name for name in ours if name not in loaded), (name for name in theirs if name not in ours)
    return Transfer(tuple(loaded), tuple(new), tuple(unused))


def _listed(names: tuple[str, ...]) -> str:
    first = sorted(names)[:3]
    return ", ".join(first) + (", …" if len(names) > len(first) else "")


def freeze(model: nn.Module, patterns: Sequence[str]) -> None:
    """Exclude parameters whose names match a shell pattern from learning; ValueError if a pattern matches none."""
    parameters = dict(model.named_parameters())
    for pattern in patterns:
        matching = [name for name in parameters if fnmatchcase(name, pattern)]
        if not matching:
            some = _listed(tuple(parameters))
            raise ValueError(f"freeze: no parameter matches {pattern!r}; names are such as {some}.")
        for name in matching:
            parameters[name].requires_grad_(False)
