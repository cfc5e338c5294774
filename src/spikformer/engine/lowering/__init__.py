"""From a config and its trained arrays to a program: the only code of the engine that knows an architecture."""

from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.max_resnet import lower_max_resnet
from spikformer.engine.lowering.maxformer import lower_maxformer
from spikformer.engine.lowering.qkformer import lower_ms_qkformer, lower_qkformer
from spikformer.engine.lowering.registry import (
    architecture_name,
    config_of,
    from_model,
    from_weights,
    lower,
    register_lowering,
)
from spikformer.engine.lowering.sew_resnet import lower_sew_event_net, lower_sew_resnet
from spikformer.engine.lowering.spike_driven_transformer import lower_spike_driven_transformer
from spikformer.engine.lowering.spikformer import lower_spikformer
from spikformer.engine.lowering.spikingformer import lower_spikingformer

__all__ = [
    "Arrays",
    "Layers",
    "architecture_name",
    "config_of",
    "from_model",
    "from_weights",
    "lower",
    "lower_max_resnet",
    "lower_maxformer",
    "lower_ms_qkformer",
    "lower_qkformer",
    "lower_sew_event_net",
    "lower_sew_resnet",
    "lower_spike_driven_transformer",
    "lower_spikformer",
    "lower_spikingformer",
    "register_lowering",
]
