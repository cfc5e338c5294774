"""Spiking neurons: pure step functions, multi-step modules over them, surrogate gradients."""

from spikformer.neurons.modules import IF, LIF, PLIF, Activation, SpikingNeuron, build_neuron
from spikformer.neurons.steps import if_step, lif_step
from spikformer.neurons.surrogates import spike, surrogate_gradient

__all__ = [
    "IF",
    "LIF",
    "PLIF",
    "Activation",
    "SpikingNeuron",
    "build_neuron",
    "if_step",
    "lif_step",
    "spike",
    "surrogate_gradient",
]
