"""Networks, their presets by name, and their weights on disk."""

# Architectures are registered in this order, in which comparisons list them.
# isort: off
from spikformer.layers.time import StreamState
from spikformer.models.base import SpikingNetwork
from spikformer.models.files import load, save
from spikformer.models.registry import build_model, create_model, register_architecture
from spikformer.models.spikformer import Spikformer
from spikformer.models.spikingformer import Spikingformer
from spikformer.models.spike_driven_transformer import SpikeDrivenTransformer
from spikformer.models.qkformer import MSQKFormer, QKFormer
from spikformer.models.maxformer import MaxFormer
from spikformer.models.max_resnet import MaxResNet
from spikformer.models.sew_resnet import SEWResNet
from spikformer.models.sew_event_net import SEWEventNet
from spikformer.models.importers import from_official
# isort: on

__all__ = [
    "MSQKFormer",
    "MaxFormer",
    "MaxResNet",
    "QKFormer",
    "SEWEventNet",
    "SEWResNet",
    "SpikeDrivenTransformer",
    "Spikformer",
    "SpikingNetwork",
    "Spikingformer",
    "StreamState",
    "build_model",
    "create_model",
    "from_official",
    "load",
    "register_architecture",
    "save",
]
