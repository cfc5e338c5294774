"""The one place that reaches for the native core, and lays a plan out for it."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

from spikformer.engine.plan import Plan

if TYPE_CHECKING:
    from spikformer import _native

MOST_THREADS = 1024
INSTRUCTIONS = "SPIKFORMER_INSTRUCTIONS"
"""Environment variable: scalar, neon, avx2, avx512 or amx instead of the best that this machine has."""


def native_core() -> ModuleType:
    try:
        from spikformer import _native
    except ImportError:
        raise ImportError(
            "The engine needs spikformer's native core, which this installation lacks: install spikformer again where "
            "there is a C++ compiler. Everything else works without it.",
            name="spikformer._native",
        ) from None
    return _native


def chosen_instructions() -> str:
    return os.environ.get(INSTRUCTIONS) or "best"


def usable_threads() -> int:
    """As many as there are cores for this process; what a container may use of them is not asked."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_THREADS)


def build_network(plan: Plan, num_threads: int, instructions: str) -> _native.Network:
    config = plan.config
    network = native_core().Network(instructions, num_threads)
    for layer, pooled in zip(plan.stages, config.pool_stages, strict=True):
        network.add_stage(layer.name, layer.weights, layer.bias, layer.neuron.as_tuple(), pooled)
    position = plan.position
    network.set_position(position.name, position.weights, position.bias, position.neuron.as_tuple())
    for block in plan.blocks:
        network.begin_block(
            block.name, config.num_heads, block.scale, config.qk_pool, block.mixed.as_tuple(), block.query is not None
        )
        for part, layer in block.layers().items():
            network.set_block_layer(part, layer.name, layer.weights, layer.bias, layer.neuron.as_tuple())
    network.set_head(plan.head_weights, plan.head_bias)
    return network
