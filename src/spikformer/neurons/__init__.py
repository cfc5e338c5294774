"""Spiking neurons: pure step functions, multi-step modules over them, surrogate gradients."""

from spikformer.neurons.functional import Dynamics, if_step, lif_step, spike, surrogate_gradient
from spikformer.neurons.modules import (
    IF,
    LIF,
    PLIF,
    Activation,
    NeuronFactory,
    SpikingNeuron,
    neuron_factory,
    register_neuron,
)

__all__ = [
    "IF",
    "LIF",
    "PLIF",
    "Activation",
    "Dynamics",
    "NeuronFactory",
    "SpikingNeuron",
    "if_step",
    "lif_step",
    "neuron_factory",
    "register_neuron",
    "spike",
    "surrogate_gradient",
]
