"""What training starts from: whitening, weights of another model as far as they fit, and parts that are frozen."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from spikformer.data import DataSet, Loader
from spikformer.data.splits import spread_samples
from spikformer.errors import FieldError
from spikformer.models import SpikingNetwork

_WHITENING_EPS = 5e-4  # of the variance: directions without contrast would be noise alone


@torch.no_grad()
def whiten(model: SpikingNetwork, data: DataSet, num_samples: int = 2000) -> None:
    """Let the first convolution start as whitening: filters v/√λ and −v/√λ of the patches' covariance C v = λ v.

    The largest λ come first, as far as there are filters; more filters than twice the patch size stay as they are.
    """
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    samples = spread_samples(data.split("train"), num_samples)
    loader = Loader(data.with_split("train", samples), "train", 100, training=False, quiet=True)
    size = first.weight[0].numel()
    total, squares, count = torch.zeros(size).double(), torch.zeros(size, size).double(), 0
    for batch in loader.epoch(0):
        frames = data.prepare(batch.samples).double()
        patches = F.unfold(frames.flatten(0, -4), first.kernel_size).transpose(1, 2).flatten(0, 1)  # [count, size]
        total, squares, count = total + patches.sum(0), squares + patches.T @ patches, count + len(patches)
    mean = total / count
    values, vectors = torch.linalg.eigh(squares / count - torch.outer(mean, mean))
    filters = (vectors / (values.clamp(min=0) + _WHITENING_EPS).sqrt()).T.flip(0)
    signed = torch.stack([filters, -filters], 1).flatten(0, 1)[: len(first.weight)]
    first.weight[: len(signed)] = signed.view(-1, *first.weight.shape[1:]).to(first.weight)


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
    if not any(ours[name].ndim > 1 and not name.startswith("head.") for name in loaded):
        raise FieldError("model", "The weights share no layer with this model: its width and channels must be alike.")
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
            raise FieldError("freeze", f"freeze: no parameter matches {pattern!r}; names are such as {some}.")
        for name in matching:
            parameters[name].requires_grad_(False)
