"""Ops: what a program is made of. `base` has what all share, `products` those with weights, `maps` the others."""

from __future__ import annotations

from spikformer.engine.ops.base import (
    MAX_ATTENTION,
    MAX_CONSTANT,
    MAX_COUNT,
    MAX_INPUTS,
    MAX_SUM,
    MAX_TOKENS,
    Kind,
    NeuronConstants,
    Op,
    Value,
    expect,
)
from spikformer.engine.ops.maps import (
    Add,
    And,
    Dilate,
    DilateHeads,
    Fire,
    Mean,
    Pool,
    PoolTokens,
    SumHeads,
    SumTokens,
)
from spikformer.engine.ops.products import Attend, Convolve, DepthwiseConvolve, ReadOut

OPS: dict[str, type[Op]] = {
    "convolve": Convolve,
    "convolve_depthwise": DepthwiseConvolve,
    "fire": Fire,
    "pool": Pool,
    "pool_tokens": PoolTokens,
    "dilate": Dilate,
    "dilate_heads": DilateHeads,
    "add": Add,
    "and": And,
    "sum_tokens": SumTokens,
    "sum_heads": SumHeads,
    "mean": Mean,
    "attend": Attend,
    "read_out": ReadOut,
}
"""Every op by its name in files and in the native core."""
OP_NAMES = {kind: name for name, kind in OPS.items()}

__all__ = [
    "MAX_ATTENTION",
    "MAX_CONSTANT",
    "MAX_COUNT",
    "MAX_INPUTS",
    "MAX_SUM",
    "MAX_TOKENS",
    "OPS",
    "OP_NAMES",
    "Add",
    "And",
    "Attend",
    "Convolve",
    "DepthwiseConvolve",
    "Dilate",
    "DilateHeads",
    "Fire",
    "Kind",
    "Mean",
    "NeuronConstants",
    "Op",
    "Pool",
    "PoolTokens",
    "ReadOut",
    "SumHeads",
    "SumTokens",
    "Value",
    "expect",
]
