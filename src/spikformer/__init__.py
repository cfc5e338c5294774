"""Spiking vision transformers. Public names load on first use, so `import spikformer` is instant."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spikformer.analysis.energy import measure_energy
    from spikformer.analysis.operations import summary
    from spikformer.analysis.recorder import record
    from spikformer.card import ModelCard
    from spikformer.config import ModelConfig
    from spikformer.data import register_dataset
    from spikformer.engine import compile_engine, load_engine
    from spikformer.layers import register_attention
    from spikformer.models import Spikformer, create_model, from_official, load, register_architecture, save
    from spikformer.neurons import register_neuron
    from spikformer.page import write_page
    from spikformer.preprocessing import Preprocessing
    from spikformer.presets import list_models
    from spikformer.runs.evaluate import evaluate
    from spikformer.runs.folder import Run
    from spikformer.runs.hub import push_to_hub
    from spikformer.runs.predict import predict
    from spikformer.runs.train import train
    from spikformer.weights import list_weights

__version__ = "0.1.0"

_HOME = {
    "ModelCard": "spikformer.card",
    "ModelConfig": "spikformer.config",
    "Preprocessing": "spikformer.preprocessing",
    "list_models": "spikformer.presets",
    "list_weights": "spikformer.weights",
    "Spikformer": "spikformer.models",
    "Run": "spikformer.runs.folder",
    "compile_engine": "spikformer.engine",
    "create_model": "spikformer.models",
    "evaluate": "spikformer.runs.evaluate",
    "from_official": "spikformer.models",
    "load": "spikformer.models",
    "load_engine": "spikformer.engine",
    "measure_energy": "spikformer.analysis.energy",
    "predict": "spikformer.runs.predict",
    "push_to_hub": "spikformer.runs.hub",
    "record": "spikformer.analysis.recorder",
    "register_architecture": "spikformer.models",
    "register_attention": "spikformer.layers",
    "register_dataset": "spikformer.data",
    "register_neuron": "spikformer.neurons",
    "save": "spikformer.models",
    "summary": "spikformer.analysis.operations",
    "train": "spikformer.runs.train",
    "write_page": "spikformer.page",
}

__all__ = [
    "ModelCard",
    "ModelConfig",
    "Preprocessing",
    "Run",
    "Spikformer",
    "compile_engine",
    "create_model",
    "evaluate",
    "from_official",
    "list_models",
    "list_weights",
    "load",
    "load_engine",
    "measure_energy",
    "predict",
    "push_to_hub",
    "record",
    "register_architecture",
    "register_attention",
    "register_dataset",
    "register_neuron",
    "save",
    "summary",
    "train",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spikformer' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names, without this module's own imports."""
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
