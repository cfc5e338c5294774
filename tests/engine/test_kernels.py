"""Every kernel against its readable twin, to the last bit where the twin's docstring promises it, on every machine."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spikformer import _native
from spikformer.engine.reference import (
    add_spikes_reference,
    attend_reference,
    count_active_reference,
    count_linear_reference,
    count_spikes_reference,
    dense_linear_reference,
    expand_counts_reference,
    expand_spikes_reference,
    expand_whole_reference,
    fire_reference,
    list_counts_reference,
    list_events_reference,
    merge_events_reference,
    pack_spikes,
    pool_map_reference,
    pool_tokens_reference,
    read_out_reference,
    spike_linear_reference,
    unpack_spikes,
    whole_linear_reference,
)


def runs_here(name: str) -> bool:
    try:
        return _native.Kernels(name).name == name
    except ValueError:
        return False


SETS = [name for name in ("scalar", "avx2", "avx512", "amx", "neon") if runs_here(name)]
WHOLE = [name for name in SETS if _native.Kernels(name).multiplies_whole]
HALF_A_STEP = 2.0**-22.99  # of the largest weight, at most: how far a weight in whole numbers is off
quickly = settings(max_examples=60, deadline=None)
densities = st.sampled_from([0.0, 0.02, 0.3, 0.9, 1.0])  # from silence to all ones
seeds = st.integers(0, 10**6)
neurons = st.tuples(
    st.sampled_from([1.0, 0.5, 1 / 1.7]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from([0.0, -0.25, 0.125]),
)


@pytest.fixture(scope="module", params=SETS)
def kernels(request: pytest.FixtureRequest) -> _native.Kernels:
    return _native.Kernels(request.param)


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


def test_there_is_always_a_set_and_the_best_is_one_of_them() -> None:
    assert SETS[0] == "scalar"
    assert _native.Kernels("best").name == SETS[-1]
    assert all(64 % _native.Kernels(name).tile == 0 for name in SETS)


@given(shape=st.lists(st.integers(1, 5), max_size=2), channels=st.integers(1, 200), density=densities, seed=seeds)
@quickly
def test_packing_is_undone_by_unpacking(shape: list[int], channels: int, density: float, seed: int) -> None:
    spikes = draw_spikes(np.random.default_rng(seed), density, *shape, channels)
    words = pack_spikes(spikes)
    assert words.shape == (*shape, (channels + 63) // 64)
    assert_same_bits(unpack_spikes(words, channels), spikes)
    assert not unpack_spikes(words, 64 * words.shape[-1])[..., channels:].any()


def test_a_channel_is_a_bit_of_its_word() -> None:
    assert pack_spikes(np.arange(130) == 129).tolist() == [0, 0, 2]


@given(steps=st.integers(1, 4), words=st.integers(0, 5), num_parts=st.integers(1, 9), density=densities, seed=seeds)
@quickly
def test_lists_of_events(
    kernels: _native.Kernels, steps: int, words: int, num_parts: int, density: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    spikes = draw_spikes(rng, density, steps, words * 64)
    counts = spikes * rng.integers(1, 256, spikes.shape, np.uint8)
    parts = draw_spikes(rng, density, num_parts, steps, words * 64)
    pairs = [
        (kernels.list_events(pack_spikes(spikes)), list_events_reference(spikes)),
        (kernels.merge_events(pack_spikes(parts)), merge_events_reference(parts)),
        (kernels.list_counts(counts), list_counts_reference(counts)),
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


@pytest.mark.skipif(not WHOLE, reason="no instruction set of this machine multiplies whole numbers")
@products
@example(neighbours=9, channels=150, outputs=1, rows=4, time_steps=9, density=1.0, seed=0)
@quickly
def test_whole_linear(neighbours, channels, outputs, rows, time_steps, density, seed) -> None:
    kernels = _native.Kernels(WHOLE[0])
    product = Product(kernels, neighbours, channels, outputs, seed)
    most = product.rng.choice([1, 9, 255])
    shape = (rows * time_steps * 3, neighbours * channels)
    counts = product.rng.integers(1, most + 1, shape, np.uint8) * draw_spikes(product.rng, density, *shape)
    ours = kernels.whole_linear(product.layer, product.spread(counts))
    assert_same_bits(ours, pad(whole_linear_reference(counts, product.weights)))
    exact = counts.astype(np.float64) @ product.weights.T.astype(np.float64)
    largest = np.abs(product.weights).max(axis=1)
    off = np.abs(ours[:, :outputs] - exact)
    assert (off <= HALF_A_STEP * (counts.sum(axis=1, keepdims=True) * largest + np.abs(exact))).all()


@pytest.mark.skipif(not WHOLE, reason="no instruction set of this machine multiplies whole numbers")
@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-38, 2.0**-126, 0.99609375, 0.998, 1.0, 3e38])
def test_weights_of_any_size_become_whole_numbers(size: float) -> None:
    kernels = _native.Kernels(WHOLE[0])
    weights = np.array([[size, -size, size / 3, -size / 3, 0]], np.float32)
    layer = kernels.pack(weights[:, None], np.zeros(1, np.float32))
    inputs = np.eye(5, 64, dtype=np.uint8)
    ours = kernels.whole_linear(layer, inputs)
    assert_same_bits(ours[:, :1], whole_linear_reference(inputs[:, :5], weights))
    np.testing.assert_allclose(ours[:, 0], weights[0], rtol=0, atol=max(2.0**-127, size * HALF_A_STEP))


@pytest.mark.skipif(not WHOLE, reason="no instruction set of this machine multiplies whole numbers")
def test_sums_of_whole_numbers_too_large_for_a_float_are_rounded_like_their_twin() -> None:
    kernels = _native.Kernels(WHOLE[0])
    weights = np.random.default_rng(0).random((16, 4096), np.float32)
    counts = np.full((3, 4096), 255, np.uint8)
    layer = kernels.pack(weights[:, None], np.zeros(16, np.float32))
    assert_same_bits(kernels.whole_linear(layer, counts)[:, :16], whole_linear_reference(counts, weights))


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


@given(
    time_steps=st.integers(0, 9),
    rows=st.integers(0, 5),
    words=st.integers(0, 4),
    neuron=neurons,
    started=st.booleans(),
    seed=seeds,
)
@quickly
def test_fire(kernels, time_steps, rows, words, neuron, started, seed) -> None:
    rng, width = np.random.default_rng(seed), words * 64
    currents, bias = draw_floats(rng, time_steps, rows, width), draw_floats(rng, width)
    currents[..., ::5] = np.round(currents[..., ::5])  # with its bias, now and then exactly at the threshold
    bias[::5] = 0
    initial = draw_floats(rng, rows, width) if started else None
    spikes, voltage = kernels.fire(currents, bias, neuron, initial)
    expected_spikes, expected_voltage = fire_reference(currents, bias, neuron, initial)
    assert_same_bits(spikes, pack_spikes(expected_spikes))
    assert_same_bits(voltage, expected_voltage)
    if time_steps > 0:  # and operation for operation what training computes
        flat = (currents + bias).reshape(time_steps, rows * width)
        trained, last = np.empty_like(flat), np.empty_like(flat[0])
        _native.lif_forward(flat, None if initial is None else initial.reshape(-1), trained, None, last, *neuron)
        assert_same_bits(spikes, pack_spikes((trained == 1).reshape(currents.shape)))
        assert_same_bits(voltage, last.reshape(rows, width))


def test_a_still_current_may_be_one_row_for_all_steps(kernels: _native.Kernels) -> None:
    row = draw_floats(np.random.default_rng(0), 1, 3, 128) + 1
    neuron, bias = (0.5, 1.0, 1.0, 0.0), np.zeros(128, np.float32)
    repeated = kernels.fire(np.broadcast_to(row, (7, 3, 128)), bias, neuron, None)
    copied = kernels.fire(np.repeat(row, 7, axis=0), bias, neuron, None)
    for ours, expected in zip(repeated, copied, strict=True):
        assert_same_bits(ours, expected)


@pytest.mark.parametrize("current", [np.inf, -np.inf, np.nan])
def test_no_current_is_too_strange_for_a_neuron(kernels: _native.Kernels, current: float) -> None:
    currents, bias, neuron = np.full((3, 2, 64), current, np.float32), np.zeros(64, np.float32), (0.5, 1.0, 1.0, 0.0)
    spikes, voltage = kernels.fire(currents, bias, neuron, None)
    with np.errstate(invalid="ignore"):
        expected_spikes, expected_voltage = fire_reference(currents, bias, neuron)
    assert_same_bits(spikes, pack_spikes(expected_spikes))
    np.testing.assert_array_equal(voltage, expected_voltage)


@given(
    tokens=st.integers(1, 200),
    head_dim=st.integers(1, 130),
    scale=st.sampled_from([1.0, 0.125, 0.3]),
    density=densities,
    seed=seeds,
)
@example(tokens=1, head_dim=1, scale=1.0, density=1.0, seed=0)
@example(tokens=200, head_dim=129, scale=0.3, density=1.0, seed=0)
@quickly
def test_attend(kernels, tokens: int, head_dim: int, scale: float, density: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads = [draw_spikes(rng, density, tokens, head_dim) for _ in range(3)]
    expected = attend_reference(*heads, scale)
    for order in ("query_key_first", "key_value_first"):
        assert_same_bits(kernels.attend(*map(pack_spikes, heads), head_dim, scale, order), expected)


@given(height=st.integers(1, 5), width=st.integers(1, 5), depth=st.integers(0, 3), density=densities, seed=seeds)
@quickly
def test_pool_map(kernels: _native.Kernels, height: int, width: int, depth: int, density: float, seed: int) -> None:
    spikes = draw_spikes(np.random.default_rng(seed), density, 2 * height, 2 * width, 64 * depth)
    assert_same_bits(kernels.pool_map(pack_spikes(spikes)), pack_spikes(pool_map_reference(spikes)))


@given(tokens=st.integers(1, 70), depth=st.integers(1, 3), reach=st.integers(0, 80), density=densities, seed=seeds)
@quickly
def test_pool_tokens(kernels: _native.Kernels, tokens: int, depth: int, reach: int, density: float, seed: int) -> None:
    spikes, kernel = draw_spikes(np.random.default_rng(seed), density, tokens, 64 * depth), 2 * reach + 1
    assert_same_bits(
        kernels.pool_tokens(pack_spikes(spikes), kernel), pack_spikes(pool_tokens_reference(spikes, kernel))
    )


@given(words=st.integers(0, 4), highest=st.integers(0, 255), density=densities, seed=seeds)
@example(words=2, highest=255, density=1.0, seed=0)
@quickly
def test_the_residual_stream(kernels, words: int, highest: int, density: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    spikes = draw_spikes(rng, density, words * 64)
    counts = rng.integers(0, highest + 1, words * 64, np.uint8)
    counts[::3] = highest
    before = counts.copy()
    assert_same_bits(kernels.add_spikes(pack_spikes(spikes), counts), add_spikes_reference(spikes, counts))
    assert_same_bits(counts, before)
    assert_same_bits(kernels.expand_spikes(pack_spikes(spikes)), expand_spikes_reference(spikes))
    assert_same_bits(kernels.expand_counts(counts[5:]), expand_counts_reference(counts[5:]))
    assert kernels.count_spikes(pack_spikes(spikes)) == count_spikes_reference(spikes)
    assert kernels.count_active(counts[5:]) == count_active_reference(counts[5:])
    if kernels.multiplies_whole:
        assert_same_bits(kernels.expand_whole(pack_spikes(spikes)), expand_whole_reference(spikes))


@given(tokens=st.integers(1, 200), width=st.integers(0, 150), classes=st.integers(0, 12), seed=seeds)
@quickly
def test_read_out(tokens: int, width: int, classes: int, seed: int) -> None:
    """Close to the twin, whose sums are NumPy's, but the same bits on every instruction set."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 256, (tokens, width), np.uint8)
    weights, bias = draw_floats(rng, classes, rng.integers(0, width + 1)), draw_floats(rng, classes)
    expected = read_out_reference(counts, weights, bias)
    first, *others = (kernels.read_out(counts, weights, bias) for kernels in map(_native.Kernels, SETS))
    assert (first.dtype, first.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(first, expected, rtol=1e-6, atol=1e-5)
    for other in others:
        assert_same_bits(other, first)


def test_results_are_the_callers_own_whatever_other_threads_do() -> None:
    kernels = _native.Kernels("best")
    spikes = [draw_spikes(np.random.default_rng(seed), 0.3, 90, 70) for seed in range(40)]
    with ThreadPoolExecutor(4) as threads:
        ours = list(threads.map(lambda x: kernels.attend(*[pack_spikes(x)] * 3, 70, 1.0, "key_value_first"), spikes))
    for product, x in zip(ours, spikes, strict=True):
        assert_same_bits(product, attend_reference(x, x, x, 1.0))
        assert product.flags.writeable
