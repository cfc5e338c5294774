"""The network as a whole, its presets by name, and its weights on disk."""

from spikformer.models.files import load, save
from spikformer.models.official import from_official
from spikformer.models.registry import create_model
from spikformer.models.spikformer import ModelState, Spikformer

__all__ = ["ModelState", "Spikformer", "create_model", "from_official", "load", "save"]
