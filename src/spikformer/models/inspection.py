"""Looking at a model that others have wrapped, replaced parts of, or put into another mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from spikformer.errors import FieldError
from spikformer.layers.conv import Conv2d
from spikformer.layers.linear import Linear
from spikformer.layers.sync_norm import SyncedBatchNorm
from spikformer.models.base import SpikingNetwork
from spikformer.models.registry import build_model

_NORMS = (SyncedBatchNorm, nn.SyncBatchNorm)
_EQUIVALENT: dict[type, tuple[type, ...]] = {
    Linear: (nn.Linear,),
    Conv2d: (nn.Conv2d,),
    nn.BatchNorm1d: _NORMS,
    nn.BatchNorm2d: _NORMS,
}
_FREE = ("card", "config", "momentum", "training")  # attributes that leave an inference as it is


def unwrap(model: nn.Module, caller: str) -> SpikingNetwork:
    """The network inside torch.compile, AveragedModel or a data-parallel wrapper; `caller` is for the error."""
    while not isinstance(model, SpikingNetwork):
        inner = getattr(model, "_orig_mod", getattr(model, "module", None))
        if inner is None:
            raise FieldError("model", f"{caller} expects a network of this package, got {type(model).__name__}.")
        model = inner
    return model


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Inference inside; afterwards every module has the mode it had, frozen parts too."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def resized(model: SpikingNetwork, time_steps: int, image_size: tuple[int, int] | None) -> Iterator[None]:
    """Other time steps and another image size inside; the layers of most networks take any."""
    config = model.config
    model.config = config.override(time_steps=time_steps, image_size=image_size)
    try:
        yield
    finally:
        model.config = config


def check_as_configured(model: SpikingNetwork, caller: str) -> None:
    """Raise unless a model is what its config builds, so that config and weights say all there is to know of it.

    Parts must have the expected type and constants, and no hooks but those of `sf.record`.
    """
    with torch.device("meta"):
        expected = dict(build_model(model.config).named_modules(remove_duplicate=False))
    found = dict(model.named_modules(remove_duplicate=False))
    names = [*expected, *(name for name in found if name not in expected)]
    for name in names:
        problem = _difference(found.get(name), expected.get(name))
        if problem:
            raise FieldError(
                name or "model",
                f"{caller} needs a network as its config builds it, but {name or 'the model'} {problem}; undo that, or "
                "keep the network in PyTorch.",
            )


def _difference(module: nn.Module | None, expected: nn.Module | None) -> str | None:
    """What is unexpected of a module, if anything is."""
    if expected is None:
        return f"is a {type(module).__name__} that was added"
    if module is None:
        return "is missing"
    if type(module) not in (type(expected), *_EQUIVALENT.get(type(expected), ())):
        return f"is a {_title(module)} instead of a {_title(expected)}"
    methods = (name for name, value in vars(module).items() if callable(value) and hasattr(type(module), name))
    if own := next(methods, None):
        return f"has a {own} of its own"
    for name, value in vars(expected).items():
        if not name.startswith("_") and name not in _FREE and vars(module).get(name) != value:
            return f"has {name} = {vars(module).get(name)!r} instead of {value!r}"
    hooks: list[Any] = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    if not all(getattr(hook, "only_watches", False) for hook in hooks):
        return "has hooks, which may change what it computes"
    return None


def _title(module: nn.Module) -> str:
    """A class by its name, with its module where the name alone would be confusing."""
    kind = type(module)
    return f"{kind.__module__}.{kind.__qualname__}"
