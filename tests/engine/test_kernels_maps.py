"""The kernels that pool, filter, mask and add up maps and heads, against their readable twins, to the last bit."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.engine.drawn import assert_same_bits, densities, draw_floats, draw_spikes, pad, quickly, seeds

from spikformer import _native
from spikformer.engine.reference import (
    and_spikes_reference,
    dilate_heads_reference,
    pack_spikes,
    pool_counts_reference,
    pool_floats_reference,
    pool_map_reference,
    pool_tokens_reference,
    spread_heads_reference,
    sum_heads_reference,
    sum_spikes_reference,
)

pytestmark = pytest.mark.core

sides = st.integers(1, 5)
windows = st.sampled_from([(3, 2), (2, 2), (3, 1)])  # kernel, stride


@given(height=sides, width=sides, depth=st.integers(0, 3), window=windows, density=densities, seed=seeds)
@quickly
def test_pool_map(kernels, height, width, depth, window, density, seed) -> None:
    _, stride = window
    spikes = draw_spikes(np.random.default_rng(seed), density, stride * height, stride * width, 64 * depth)
    assert_same_bits(kernels.pool_map(pack_spikes(spikes), *window), pack_spikes(pool_map_reference(spikes, *window)))


@given(height=sides, width=sides, depth=st.integers(0, 150), kernel=st.sampled_from([2, 3]), seed=seeds)
@quickly
def test_pool_counts(kernels, height, width, depth, kernel, seed) -> None:
    counts = np.random.default_rng(seed).integers(0, 256, (2 * height, 2 * width, depth), np.uint8)
    assert_same_bits(kernels.pool_counts(counts, kernel), pool_counts_reference(counts, kernel))


@given(height=sides, width=sides, depth=st.integers(0, 3), kernel=st.sampled_from([2, 3]), seed=seeds)
@quickly
def test_pool_floats(kernels, height, width, depth, kernel, seed) -> None:
    values = draw_floats(np.random.default_rng(seed), 2 * height, 2 * width, 64 * depth)
    values[..., ::3] -= 10  # all negative: a border of zeros would win
    values[..., ::5] = -np.inf
    assert_same_bits(kernels.pool_floats(values, kernel), pool_floats_reference(values, kernel))


def test_a_pool_is_3_by_3_with_stride_2_unless_told_otherwise(kernels: _native.Kernels) -> None:
    spikes = draw_spikes(np.random.default_rng(0), 0.1, 4, 6, 64)
    assert_same_bits(kernels.pool_map(pack_spikes(spikes)), pack_spikes(pool_map_reference(spikes)))


@given(tokens=st.integers(1, 70), depth=st.integers(1, 3), reach=st.integers(0, 80), density=densities, seed=seeds)
@quickly
def test_pool_tokens(kernels: _native.Kernels, tokens: int, depth: int, reach: int, density: float, seed: int) -> None:
    spikes, kernel = draw_spikes(np.random.default_rng(seed), density, tokens, 64 * depth), 2 * reach + 1
    assert_same_bits(
        kernels.pool_tokens(pack_spikes(spikes), kernel), pack_spikes(pool_tokens_reference(spikes, kernel))
    )


heads = given(
    rows=st.integers(1, 9),
    steps=st.integers(1, 5),
    num_heads=st.sampled_from([1, 2, 3, 8, 70]),
    head_dim=st.sampled_from([1, 2, 5, 12, 32, 64, 65, 130]),
    density=densities,
    seed=seeds,
)


@heads
@example(rows=3, steps=1, num_heads=1, head_dim=64, density=0.02, seed=0)
@quickly
def test_dilate_heads(kernels, rows, steps, num_heads, head_dim, density, seed) -> None:
    channels = num_heads * head_dim
    spikes = draw_spikes(np.random.default_rng(seed), density, rows, steps, channels)
    expected = np.stack([dilate_heads_reference(spikes[:, t], num_heads) for t in range(steps)], axis=1)
    assert_same_bits(kernels.dilate_heads(pack_spikes(spikes), channels, num_heads), pack_spikes(expected))


@heads
@quickly
def test_sums_and_masks_of_heads(kernels, rows, steps, num_heads, head_dim, density, seed) -> None:
    rng, channels = np.random.default_rng(seed), num_heads * head_dim
    spikes, gates = draw_spikes(rng, density, rows, channels), draw_spikes(rng, density, num_heads)
    assert_same_bits(
        kernels.sum_heads(pack_spikes(spikes), channels, num_heads), sum_heads_reference(spikes, num_heads)
    )
    spread = kernels.spread_heads(pack_spikes(gates), num_heads, head_dim)
    assert_same_bits(spread, pack_spikes(spread_heads_reference(gates, head_dim)))


@given(words=st.integers(0, 5), density=densities, inverted=st.booleans(), seed=seeds)
@quickly
def test_and_spikes(kernels, words, density, inverted, seed) -> None:
    rng = np.random.default_rng(seed)
    spikes, mask = draw_spikes(rng, density, 64 * words), draw_spikes(rng, 0.5, 64 * words)
    ours = kernels.and_spikes(pack_spikes(spikes), pack_spikes(mask), inverted)
    assert_same_bits(ours, pack_spikes(and_spikes_reference(spikes, mask, inverted)))


@given(
    tokens=st.sampled_from([0, 1, 64, 255, 256, 511, 900]), channels=st.integers(0, 150), density=densities, seed=seeds
)
@example(tokens=900, channels=65, density=1.0, seed=0)
@quickly
def test_sum_spikes(kernels, tokens, channels, density, seed) -> None:
    """More tokens than a byte can count are added up in parts."""
    spikes = draw_spikes(np.random.default_rng(seed), density, tokens, channels)
    assert_same_bits(kernels.sum_spikes(pack_spikes(spikes)), pad(sum_spikes_reference(spikes)))


def words(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint64)


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda k: k.pool_map(words(4, 4, 1), 4, 2),
        lambda k: k.pool_map(words(4, 4, 1), 2, 1),
        lambda k: k.pool_map(words(4, 4, 1), 3, 3),
        lambda k: k.pool_map(words(4, 4, 1), 3, 0),
        lambda k: k.pool_map(words(3, 4, 1), 2, 2),
        lambda k: k.pool_counts(np.zeros((3, 4, 5), np.uint8)),
        lambda k: k.pool_counts(np.zeros((4, 5), np.uint8)),
        lambda k: k.pool_floats(floats(4, 4, 65)),
        lambda k: k.pool_floats(floats(4, 64)),
        lambda k: k.dilate_heads(words(2, 1, 2), 64, 2),
        lambda k: k.dilate_heads(words(2, 1, 2), 128, 3),
        lambda k: k.dilate_heads(words(2, 1, 2), 128, 0),
        lambda k: k.dilate_heads(words(2, 1, 2), 128, -1),
        lambda k: k.dilate_heads(words(2, 2), 128, 2),
        lambda k: k.sum_heads(words(2, 2), 129, 3),
        lambda k: k.sum_heads(words(2, 2), 0, 1),
        lambda k: k.spread_heads(words(2), 64, 3),
        lambda k: k.spread_heads(words(1), 64, 0),
        lambda k: k.spread_heads(words(1), 64, 2**40),
        lambda k: k.and_spikes(words(2), words(3), False),
        lambda k: k.sum_spikes(words(2)),
    ],
)
def test_what_does_not_fit(kernels: _native.Kernels, call: Callable[[_native.Kernels], object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        call(kernels)
