"""The words that config fields may hold, so that every room spells them the same."""

from typing import Literal

Attention = Literal["ssa", "identity", "relu", "leaky_relu", "softmax", "softmax_float_value", "none", "random"]
Neuron = Literal["lif", "if", "plif", "relu", "gelu"]
Surrogate = Literal["sigmoid", "arctan"]
LinearInit = Literal["trunc_normal", "torch"]
