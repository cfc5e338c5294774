"""Models by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from spikformer.errors import UnknownNameError
from spikformer.paper import PaperRow


@dataclass(frozen=True)
class Preset:
    """A model's config, whose type is its architecture, and what the paper reports of it (None for our own)."""

    config: Any
    paper: PaperRow | None = None


PRESETS: dict[str, Callable[[], Preset]] = {}


def preset(make: Callable[[], Preset]) -> Callable[[], Preset]:
    """Register a preset under its function's name."""
    PRESETS[make.__name__] = make
    return make


def list_models(pattern: str = "*") -> list[str]:
    """Names of all presets that match a shell pattern, such as "*cifar10" or "transformer_*"."""
    return [name for name in PRESETS if fnmatchcase(name, pattern)]


def get_preset(name: str) -> Preset:
    """The preset of that name; a misspelt one is answered with the nearest."""
    if name not in PRESETS:
        raise UnknownNameError("model", name, PRESETS, "`spikformer models` lists them.")
    return PRESETS[name]()
