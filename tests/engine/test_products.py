"""The kernels that list events and multiply, against their readable twins."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.engine.drawn import (
    INTEGER_SETS,
    assert_same_bits,
    densities,
    draw_floats,
    draw_spikes,
    needs_integers,
    pad,
    quickly,
    seeds,
)
from tests.mistakes import mistake

from spikformer import _native
from spikformer.engine.reference import (
    count_linear_reference,
    dense_linear_reference,
    depthwise_linear_reference,
    integer_linear_reference,
    list_counts_reference,
    list_events_reference,
    merge_counts_reference,
    merge_events_reference,
    pack_spikes,
    spike_linear_reference,
)

pytestmark = pytest.mark.core

HALF_A_STEP = 2.0**-22.99  # of the largest weight, at most: how far a weight in integers is off


@given(steps=st.integers(1, 4), words=st.integers(0, 5), num_parts=st.integers(1, 49), density=densities, seed=seeds)
@quickly
def test_lists_of_events(
    kernels: _native.Kernels, steps: int, words: int, num_parts: int, density: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    spikes = draw_spikes(rng, density, steps, words * 64)
    counts = spikes * rng.integers(1, 256, spikes.shape, np.uint8)
    parts = draw_spikes(rng, density, num_parts, steps, words * 64)
    part_counts = parts * rng.integers(1, 256, parts.shape, np.uint8)
    pairs = [
        (kernels.list_events(pack_spikes(spikes)), list_events_reference(spikes)),
        (kernels.merge_events(pack_spikes(parts)), merge_events_reference(parts)),
        (kernels.list_counts(counts), list_counts_reference(counts)),
        (kernels.merge_counts(part_counts), merge_counts_reference(part_counts)),
    ]
    for ours, expected in pairs:
        for mine, wanted in zip(ours, expected, strict=True):
            assert_same_bits(mine, wanted)


class Product:
    """A layer of odd sizes, packed, and rows for it."""

    def __init__(self, kernels: _native.Kernels, neighbours: int, channels: int, outputs: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        weights = draw_floats(self.rng, outputs, neighbours, channels)
        self.layer = kernels.pack(weights, draw_floats(self.rng, outputs))
        self.weights = weights.reshape(outputs, -1)
        self.inside = (neighbours, channels)
        assert (self.layer.num_outputs, self.layer.words) == (outputs, (outputs + 63) // 64)
        assert self.layer.num_inputs == neighbours * ((channels + 63) // 64) * 64

    def spread(self, rows: np.ndarray, change: Callable[[np.ndarray], np.ndarray] = pad) -> np.ndarray:
        """Rows […, K] as the kernels read them: each neighbour's channels padded, or packed."""
        changed = change(rows.reshape(*rows.shape[:-1], *self.inside))
        return changed.reshape(*rows.shape[:-1], -1)


products = given(
    neighbours=st.sampled_from([1, 1, 9]),
    channels=st.integers(1, 150),
    outputs=st.integers(1, 150),
    rows=st.integers(1, 4),
    time_steps=st.integers(1, 9),
    density=densities,
    seed=seeds,
)


@products
@example(neighbours=1, channels=1, outputs=1, rows=1, time_steps=1, density=1.0, seed=0)
@quickly
def test_spike_linear(kernels, neighbours, channels, outputs, rows, time_steps, density, seed) -> None:
    product = Product(kernels, neighbours, channels, outputs, seed)
    spikes = draw_spikes(product.rng, density, rows, time_steps, neighbours * channels)
    ours = kernels.spike_linear(product.layer, product.spread(spikes, pack_spikes))
    assert_same_bits(ours, pad(spike_linear_reference(spikes, product.weights)))  # padded outputs are 0


@products
@example(neighbours=1, channels=3, outputs=2, rows=1, time_steps=2, density=1.0, seed=0)
@quickly
def test_count_linear(kernels, neighbours, channels, outputs, rows, time_steps, density, seed) -> None:
    product = Product(kernels, neighbours, channels, outputs, seed)
    most = 255 if neighbours * channels < 20 else 5
    counts = product.rng.binomial(most, density, (rows, time_steps, neighbours * channels)).astype(np.uint8)
    ours = kernels.count_linear(product.layer, product.spread(counts))
    assert_same_bits(ours, pad(count_linear_reference(counts, product.weights)))


@given(
    height=st.integers(1, 6),
    width=st.integers(1, 6),
    time_steps=st.integers(1, 9),
    channels=st.integers(1, 150),
    kernel=st.sampled_from([1, 3, 5, 7]),
    density=densities,
    seed=seeds,
)
@quickly
def test_depthwise_linear(kernels, height, width, time_steps, channels, kernel, density, seed) -> None:
    rng = np.random.default_rng(seed)
    spikes, weights = (
        draw_spikes(rng, density, height, width, time_steps, channels),
        draw_floats(rng, kernel, kernel, channels),
    )
    weights[..., ::7] = -0.0
    ours = kernels.depthwise_linear(pack_spikes(spikes), weights)
    assert_same_bits(ours, pad(depthwise_linear_reference(spikes, weights)))  # padded channels are 0


def test_depthwise_weights_that_do_not_fit(kernels: _native.Kernels) -> None:
    spikes = np.zeros((2, 3, 4, 1), np.uint64)
    for shape in ((2, 2, 5), (3, 5, 5), (9, 9, 5), (3, 3, 65), (3, 3, 0), (3, 5)):
        with mistake(ValueError, "weights"):
            kernels.depthwise_linear(spikes, np.zeros(shape, np.float32))


@products
@quickly
def test_dense_linear(kernels, neighbours, channels, outputs, rows, time_steps, density, seed) -> None:
    product = Product(kernels, neighbours, channels, outputs, seed)
    inputs = draw_floats(product.rng, rows * time_steps, neighbours * channels)
    inputs *= draw_spikes(product.rng, density, *inputs.shape)
    ours = kernels.dense_linear(product.layer, product.spread(inputs))
    expected = pad(dense_linear_reference(inputs, product.weights))
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-4)
    assert not ours[:, outputs:].any()


@needs_integers
@products
@example(neighbours=9, channels=150, outputs=1, rows=4, time_steps=9, density=1.0, seed=0)
@quickly
def test_integer_linear(neighbours, channels, outputs, rows, time_steps, density, seed) -> None:
    kernels = _native.Kernels(INTEGER_SETS[0])
    product = Product(kernels, neighbours, channels, outputs, seed)
    most = product.rng.choice([1, 9, 255])
    shape = (rows * time_steps * 3, neighbours * channels)
    counts = product.rng.integers(1, most + 1, shape, np.uint8) * draw_spikes(product.rng, density, *shape)
    ours = kernels.integer_linear(product.layer, product.spread(counts))
    assert_same_bits(ours, pad(integer_linear_reference(counts, product.weights)))
    exact = counts.astype(np.float64) @ product.weights.T.astype(np.float64)
    largest = np.abs(product.weights).max(axis=1)
    off = np.abs(ours[:, :outputs] - exact)
    assert (off <= HALF_A_STEP * (counts.sum(axis=1, keepdims=True) * largest + np.abs(exact))).all()


@needs_integers
@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-38, 2.0**-126, 0.99609375, 0.998, 1.0, 3e38])
def test_weights_of_any_size_become_integers(size: float) -> None:
    kernels = _native.Kernels(INTEGER_SETS[0])
    weights = np.array([[size, -size, size / 3, -size / 3, 0]], np.float32)
    layer = kernels.pack(weights[:, None], np.zeros(1, np.float32))
    inputs = np.eye(5, 64, dtype=np.uint8)
    ours = kernels.integer_linear(layer, inputs)
    assert_same_bits(ours[:, :1], integer_linear_reference(inputs[:, :5], weights))
    np.testing.assert_allclose(ours[:, 0], weights[0], rtol=0, atol=max(2.0**-127, size * HALF_A_STEP))


@needs_integers
def test_sums_of_integers_too_large_for_a_float_are_rounded_like_their_twin() -> None:
    kernels = _native.Kernels(INTEGER_SETS[0])
    weights = np.random.default_rng(0).random((16, 4096), np.float32)
    counts = np.full((3, 4096), 255, np.uint8)
    layer = kernels.pack(weights[:, None], np.zeros(16, np.float32))
    assert_same_bits(kernels.integer_linear(layer, counts)[:, :16], integer_linear_reference(counts, weights))


def test_a_row_of_a_dense_product_does_not_feel_the_other_rows(kernels: _native.Kernels) -> None:
    product = Product(kernels, 1, 130, 70, seed=0)
    inputs = product.spread(draw_floats(product.rng, 77, 130))
    together = kernels.dense_linear(product.layer, inputs)
    assert_same_bits(together, np.concatenate([kernels.dense_linear(product.layer, row[None]) for row in inputs]))


def test_the_last_of_all_inputs_has_an_index(kernels: _native.Kernels) -> None:
    layer = kernels.pack(np.arange(65536, dtype=np.float32).reshape(1, 16, 4096), np.zeros(1, np.float32))
    spikes = np.zeros((1, 2, 1024), np.uint64)
    spikes[0, 1, -1] = 1 << 63
    assert kernels.spike_linear(layer, spikes)[0, :, 0].tolist() == [0, 65535]
    assert kernels.list_events(spikes[0])[0].tolist() == [65535]
