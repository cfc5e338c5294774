"""Models by name."""

from __future__ import annotations

from typing import Any

from spikformer.models.spikformer import Spikformer
from spikformer.presets import get_preset


def create_model(name: str, **overrides: Any) -> Spikformer:
    """A preset with fresh weights; any field of its config may be overridden."""
    return Spikformer(get_preset(name).config.override(**overrides))
