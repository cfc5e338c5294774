"""Every published model, and the small ones of our own: one function each, with the published row beside it.

    spikformer models                       lists them
    sf.create_model("spikformer_4_384_cifar10")

Where a paper and its authors' code differ, the presets follow the code; `# Paper:` marks the difference.
"""

from spikformer.presets import (
    cml_spikformer,
    maxformer,
    qkformer,
    sew_resnet,
    spike_driven_transformer,
    spikformer,
    spikingformer,
)
from spikformer.presets.registry import PRESETS, Preset, get_preset, list_models, preset

__all__ = [
    "PRESETS",
    "Preset",
    "cml_spikformer",
    "get_preset",
    "list_models",
    "maxformer",
    "preset",
    "qkformer",
    "sew_resnet",
    "spike_driven_transformer",
    "spikformer",
    "spikingformer",
]
