"""Every kernel against its readable twin, to the last bit where the twin's docstring promises it, on every machine.

Those that list events and multiply are in test_products.py, pools, masks and sums over maps in test_kernels_maps.py.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.engine.drawn import SETS, assert_same_bits, densities, draw_floats, draw_spikes, quickly, seeds

from spikformer import _native
from spikformer.engine.native import chosen_instructions
from spikformer.engine.reference import (
    add_floats_reference,
    add_spikes_reference,
    attend_reference,
    count_active_reference,
    count_spikes_reference,
    expand_bytes_reference,
    expand_counts_reference,
    expand_spikes_reference,
    fire_reference,
    pack_spikes,
    read_out_floats_reference,
    read_out_reference,
    unpack_spikes,
)

pytestmark = pytest.mark.core

neurons = st.tuples(
    st.sampled_from([1.0, 0.5, 1 / 1.7]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from([0.0, -0.25, 0.125]),
)


def test_there_is_always_a_set_and_the_best_is_one_of_them() -> None:
    assert SETS[0] == "scalar"
    assert _native.Kernels(chosen_instructions()).name == SETS[-1]
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
    if kernels.multiplies_integers:
        assert_same_bits(kernels.expand_bytes(pack_spikes(spikes)), expand_bytes_reference(spikes))


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


@given(words=st.integers(0, 4), seed=seeds)
@quickly
def test_add_floats(kernels: _native.Kernels, words: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = draw_floats(rng, words * 64), draw_floats(rng, words * 64)
    a[::5] *= np.float32(1e-39)  # subnormal
    before = a.copy()
    assert_same_bits(kernels.add_floats(a, b), add_floats_reference(a, b))
    assert_same_bits(kernels.add_floats(a, a), add_floats_reference(a, a))
    assert_same_bits(a, before)


@given(tokens=st.integers(1, 200), width=st.integers(0, 150), classes=st.integers(0, 12), seed=seeds)
@quickly
def test_read_out_floats(tokens: int, width: int, classes: int, seed: int) -> None:
    """Close to the twin, and the same bits on every instruction set, as for counts."""
    rng = np.random.default_rng(seed)
    values = draw_floats(rng, tokens, width)
    features = int(rng.integers(0, width + 1))
    weights, bias = draw_floats(rng, classes, features), draw_floats(rng, classes)
    expected = read_out_floats_reference(values[:, :features], weights, bias)
    first, *others = (kernels.read_out_floats(values, weights, bias) for kernels in map(_native.Kernels, SETS))
    assert (first.dtype, first.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(first, expected, rtol=1e-6, atol=1e-5)
    for other in others:
        assert_same_bits(other, first)


def test_streams_of_floats_that_do_not_fit(kernels: _native.Kernels) -> None:
    def floats(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    for call in (
        lambda: kernels.add_floats(floats(64), floats(128)),
        lambda: kernels.add_floats(floats(65), floats(65)),
        lambda: kernels.read_out_floats(floats(0, 8), floats(2, 8), floats(2)),
        lambda: kernels.read_out_floats(floats(1, 7), floats(2, 8), floats(2)),
        lambda: kernels.read_out_floats(floats(1, 8), floats(2, 8), floats(3)),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            call()


def test_results_are_the_callers_own_whatever_other_threads_do() -> None:
    kernels = _native.Kernels(SETS[-1])
    spikes = [draw_spikes(np.random.default_rng(seed), 0.3, 90, 70) for seed in range(40)]
    with ThreadPoolExecutor(4) as threads:
        ours = list(threads.map(lambda x: kernels.attend(*[pack_spikes(x)] * 3, 70, 1.0, "key_value_first"), spikes))
    for product, x in zip(ours, spikes, strict=True):
        assert_same_bits(product, attend_reference(x, x, x, 1.0))
        assert product.flags.writeable
