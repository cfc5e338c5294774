"""Architectures and models by name.

A file in `models/` registers its architecture; other code looks it up here, and knows the interface of `base` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from spikformer.config import NetworkConfig
from spikformer.errors import FieldError, UnknownNameError
from spikformer.models.base import SpikingNetwork
from spikformer.presets import get_preset


@dataclass(frozen=True)
class Architecture:
    """A kind of network: its name in files, what builds one, and the type of its configs, which no other has."""

    name: str
    build: Callable[[Any], SpikingNetwork]
    config_type: type[NetworkConfig]


_ARCHITECTURES: dict[str, Architecture] = {}


def register_architecture(name: str, build: Callable[[Any], SpikingNetwork], config_type: type[NetworkConfig]) -> None:
    """Let files, presets and recipes name an architecture; from outside the package, too."""
    for other in _ARCHITECTURES.values():
        if other.config_type is config_type and other.name != name:
            raise FieldError(
                "config_type",
                f"{config_type.__name__} is the config of {other.name!r}; derive a config of its own for {name!r}.",
            )
    _ARCHITECTURES[name] = Architecture(name, build, config_type)


def list_architectures() -> list[Architecture]:
    """All that are registered, in the order of registration."""
    return list(_ARCHITECTURES.values())


def get_architecture(name: str) -> Architecture:
    if name not in _ARCHITECTURES:
        raise UnknownNameError("architecture", name, _ARCHITECTURES)
    return _ARCHITECTURES[name]


def architecture_of(config: NetworkConfig) -> Architecture:
    """The architecture whose config this is."""
    for architecture in _ARCHITECTURES.values():
        if architecture.config_type is type(config):
            return architecture
    raise FieldError(
        "config", f"No architecture has a {type(config).__name__}; register it with register_architecture."
    )


def build_model(config: NetworkConfig) -> SpikingNetwork:
    """The network of a config, with fresh weights."""
    architecture = architecture_of(config)
    model = architecture.build(config)
    model.card = replace(model.card, architecture=architecture.name)
    return model


def create_model(name: str, **overrides: Any) -> SpikingNetwork:
    """A preset with fresh weights; any field of its config may be overridden."""
    return build_model(get_preset(name).config.override(**overrides))
