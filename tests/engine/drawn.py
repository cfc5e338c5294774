"""Hypothesis strategies and comparisons for tests of kernels, and the instruction sets that run here."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from spikformer import _native
from spikformer.engine.native import chosen_instructions
from spikformer.engine.ops import OPS, NeuronConstants
from spikformer.engine.program import Builder, Program


def _runs_here(name: str) -> bool:
    try:
        return _native.Kernels(name).name == name
    except ValueError:
        return False


BEST = _native.Kernels(chosen_instructions()).name  # SPIKFORMER_INSTRUCTIONS=avx2 holds the tests to AVX2 and scalar
_HERE = [name for name in ("scalar", "avx2", "avx512", "amx", "neon") if _runs_here(name)]
SETS = _HERE[: _HERE.index(BEST) + 1]
INTEGER_SETS = [name for name in SETS if _native.Kernels(name).multiplies_integers]
needs_integers = pytest.mark.skipif(
    not INTEGER_SETS, reason="this processor has no instructions for products of integers"
)
quickly = settings(max_examples=60, deadline=None)
densities = st.sampled_from([0.0, 0.02, 0.3, 0.9, 1.0])  # from silence to all ones
seeds = st.integers(0, 10**6)
NEURONS = (
    NeuronConstants(0.5, 1, 1, 0),
    NeuronConstants(1, 0, 1, 0),
    NeuronConstants(0.25, 1, 0.5, -0.25),
)  # LIF, IF, a neuron with a rest


def draw_spikes(rng: np.random.Generator, density: float, *shape: int) -> np.ndarray:
    return rng.random(shape) < density


def draw_floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def pad(array: np.ndarray) -> np.ndarray:
    """The last axis filled up with zeros to whole words."""
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, -array.shape[-1] % 64)])


def assert_same_bits(ours: np.ndarray, expected: np.ndarray) -> None:
    """Equal where == is not enough: types, shapes, and the sign of a zero."""
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    assert ours.tobytes() == expected.tobytes()


def program_of_every_op() -> Program:
    """A small one, with everything that an engine runs together: pools before neurons, streams of floats, masks."""
    rng, build = np.random.default_rng(0), Builder()
    lif, integrate, resting = NEURONS
    bias = draw_floats(rng, 8)
    current = build.convolve("convolve", 0, draw_floats(rng, 8, 7, 7, 2), bias, 2)
    x = build.fire("fire", build.pool("pool_floats", current), lif)
    stream = build.convolve("stream", x, draw_floats(rng, 8, 3, 3, 8), bias)
    stream = build.add("add_floats", stream, build.convolve("more", x, draw_floats(rng, 8, 1, 1, 8), bias))
    x = build.fire("read", stream, resting)
    x = build.fire("local", build.convolve_depthwise("depthwise", x, draw_floats(rng, 3, 3, 8), bias), integrate)
    gate = build.fire("gate", build.sum_heads("sum_heads", x, 2), integrate)
    x = build.conjunction("heads", build.dilate_heads("dilate_heads", build.dilate("dilate", x), 2), gate, 2, True)
    whole = build.fire("whole", build.sum_tokens("sum_tokens", x), integrate)
    x = build.pool_tokens("pool_tokens", build.conjunction("positions", x, whole), 3)
    mixed = build.fire("mixed", build.attend("attend", x, x, x, 2, 0.25), lif)
    counts = build.pool("pool", build.add("add", x, mixed), 2)
    x = build.fire("last", build.convolve("counts", counts, draw_floats(rng, 8, 3, 3, 8), bias), lif)
    build.read_out("head", build.mean("mean", x), draw_floats(rng, 3, 8), bias[:3])
    assert {type(op) for op in build.ops} == set(OPS.values())
    return Program(tuple(build.ops), 2, 4, (8, 16))
