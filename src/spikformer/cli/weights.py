"""Weights that remember the data they were trained on, as `train` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spikformer.models import Spikformer

_REMEMBERED = ("name", "class_names", "events", "mean", "std")


def load_trained(path: Path) -> tuple[Spikformer, dict[str, Any]]:
    """The model, and what it remembers of its data; weights that remember too little are refused."""
    from spikformer.models import load

    model = load(path)
    about = model.about.get("data")
    if not isinstance(about, dict) or not all(key in about for key in _REMEMBERED):
        raise ValueError(f"{path} does not say which data it was trained on; only `train` notes that.")
    if len(about["class_names"]) != model.config.num_classes:
        named, answered = len(about["class_names"]), model.config.num_classes
        raise ValueError(f"{path} names {named} classes and answers with {answered}; it is damaged.")
    return model, about
