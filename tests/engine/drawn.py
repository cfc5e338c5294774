"""Hypothesis strategies and comparisons for tests of kernels, and the instruction sets that run here."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from spikformer import _native
from spikformer.engine.native import chosen_instructions
from spikformer.engine.ops import Neuron


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
NEURONS = (Neuron(0.5, 1, 1, 0), Neuron(1, 0, 1, 0), Neuron(0.25, 1, 0.5, -0.25))  # LIF, IF, a neuron with a rest


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
