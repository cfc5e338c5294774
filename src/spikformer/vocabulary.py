"""The words that config fields may hold, so that every room spells them the same; and what to say to a misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

Attention = Literal["ssa", "identity", "relu", "leaky_relu", "softmax", "softmax_float_value", "none", "random"]
Neuron = Literal["lif", "if", "plif", "relu", "gelu"]
Surrogate = Literal["sigmoid", "arctan"]
LinearInit = Literal["trunc_normal", "torch"]


def did_you_mean(word: object, known: Iterable[str], otherwise: str) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or something else to do."""
    near = get_close_matches(str(word).lower(), list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise
