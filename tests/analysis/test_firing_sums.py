"""Sums over what layers read: equal to counting by hand, whatever the pieces they are taken in."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spikformer.analysis.firing import NUM_BINS, AttentionInput, LayerInput
from spikformer.analysis.recorder import AttentionRecord
from spikformer.analysis.specimens import random_spikes

NUMBERS = st.one_of(
    st.integers(0, 20),
    st.sampled_from([-1.0, -0.5, -0.0, 0.25, 15.5, 16.5, 255.0, 256.0, 257.0, 1e6]),
)


@st.composite
def inputs(draw: st.DrawFn) -> list[Tensor]:
    """Batches [T, B, 3] of the same T."""
    steps = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    return [
        torch.tensor(draw(st.lists(NUMBERS, min_size=steps * size * 3, max_size=steps * size * 3)))
        .double()
        .reshape(steps, size, 3)
        for size in sizes
    ]


def assert_same(one: LayerInput | AttentionInput, other: LayerInput | AttentionInput) -> None:
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        assert np.array_equal(value, getattr(other, name)), name


@given(inputs())
@settings(deadline=None)
def test_an_input_is_counted_entry_by_entry(batches: list[Tensor]) -> None:
    seen = LayerInput.of(batches[0])
    for batch in batches[1:]:
        seen.add(LayerInput.of(batch))
    for step, numbers in enumerate(torch.cat(batches, 1).flatten(1).tolist()):
        spikes = [number for number in numbers if number >= 0 and number == int(number)]
        assert seen.num_entries[step] == len(numbers)
        assert seen.num_nonzero[step] == sum(number != 0 for number in numbers)
        assert seen.num_fractions[step] == len(numbers) - len(spikes)
        assert seen.total[step] == sum(numbers)
        expected = [spikes.count(number) for number in range(16)]
        assert seen.histogram[step].tolist() == [*expected, len(spikes) - sum(expected)]
    flat = torch.cat(batches, 1).flatten(1)
    assert np.array_equal(seen.mean, flat.mean(1).numpy())
    assert np.array_equal(seen.density, (flat != 0).double().mean(1).numpy())
    assert np.array_equal(seen.ones, (flat == 1).double().mean(1).numpy())
    assert seen.binary == bool(((flat == 0) | (flat == 1)).all())


@given(inputs())
@settings(deadline=None)
def test_pieces_add_up_to_the_whole(batches: list[Tensor]) -> None:
    seen = LayerInput.of(batches[0])
    for batch in batches[1:]:
        seen.add(LayerInput.of(batch))
    assert_same(seen, LayerInput.of(torch.cat(batches, 1)))


def test_integers_have_bins_of_their_own_up_to_16() -> None:
    numbers = torch.arange(21.0).repeat_interleave(torch.arange(1, 22))
    seen = LayerInput.of(numbers[None])
    assert NUM_BINS == 17
    assert seen.histogram.shape == (1, 17)
    assert seen.histogram[0].tolist() == [*range(1, 17), 17 + 18 + 19 + 20 + 21]
    assert seen.num_fractions.tolist() == [0]
    assert not seen.binary


@pytest.mark.parametrize("odd", [0.5, -1.0, 2.0, float("nan"), 1 - 2**-24])
def test_one_odd_entry_in_one_step_is_no_spike_train(odd: float) -> None:
    spikes = random_spikes((3, 50), 0.3, seed=0)
    assert LayerInput.of(spikes).binary
    spikes[1, 7] = odd
    seen = LayerInput.of(spikes)
    assert not seen.binary
    assert seen.num_fractions.tolist() == [0, int(odd != 2), 0]


def test_more_than_a_float_can_count() -> None:
    many = 2**24 + 1
    seen = LayerInput.of(torch.ones(1, dtype=torch.float16).expand(1, many))
    assert seen.total.tolist() == [many]
    assert seen.histogram[0, 1] == seen.num_nonzero[0] == seen.num_entries[0] == many
    seen.add(LayerInput.of(torch.tensor([[1.0, 0.0]])))
    assert seen.total.tolist() == [many + 1]
    assert seen.histogram[0, :2].tolist() == [1, many + 1]
    assert seen.binary


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_dtype(dtype: torch.dtype) -> None:
    numbers = torch.tensor([[0.0, 1, 2, 16, 100, 0.5]], dtype=dtype, requires_grad=True)
    seen = LayerInput.of(numbers)
    assert seen.histogram[0].nonzero()[0].tolist() == [0, 1, 2, 16]
    assert (seen.histogram[0, 16], seen.num_fractions[0], seen.total[0]) == (2, 1, 119.5)


def tokens(shape: tuple[int, ...], density: float, seed: int, floats: bool = False) -> Tensor:
    spikes = random_spikes(shape, density, seed).double()
    return spikes * torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double() if floats else spikes


@given(
    shape=st.tuples(*(st.integers(1, high) for high in (3, 2, 3, 6, 6))),
    densities=st.tuples(*(st.sampled_from([0.0, 0.1, 0.5, 1.0]),) * 3),
    seed=st.integers(0, 1000),
    floats=st.booleans(),
)
@settings(deadline=None)
def test_coincidences_are_counted_pair_by_pair(
    shape: tuple[int, int, int, int, int], densities: tuple[float, float, float], seed: int, floats: bool
) -> None:
    query, key = (tokens(shape, density, seed + place, floats) for place, density in enumerate(densities[:2]))
    value = tokens(shape, densities[2], seed + 2)
    seen = AttentionInput.of(AttentionRecord(query, key, value, scale=0.125, softmax=False))
    steps, batch, heads, num_tokens, width = shape
    for step in range(steps):
        first = second = third = fourth = 0
        for sample, head in product(range(batch), range(heads)):
            q, k, v = (x[step, sample, head].numpy() for x in (query, key, value))
            places, features = range(num_tokens), range(width)
            first += sum(bool(q[i, a] and k[j, a]) for i in places for j in places for a in features)
            second += sum(bool((q @ k.T)[i, j] and v[j, b]) for i in places for j in places for b in features)
            third += sum(bool(k[j, a] and v[j, b]) for j in places for a in features for b in features)
            fourth += sum(bool(q[i, a] and (k.T @ v)[a, b]) for i in places for a in features for b in features)
        assert seen.query_key_first[step].tolist() == [first, second]
        assert seen.key_value_first[step].tolist() == [third, fourth]
        assert seen.num_entries[step] == value[step].numel()
        for name, x in (("Q", query), ("K", key), ("V", value)):
            assert seen.rates[name][step] == pytest.approx(x[step].mean().item(), abs=1e-12)
    assert seen.binary == tuple(bool(((x == 0) | (x == 1)).all()) for x in (query, key, value))


def test_a_softmax_looks_everywhere() -> None:
    shape = (2, 3, 2, 5, 4)
    query, key, value = tokens(shape, 0.5, 0, floats=True), tokens(shape, 0.5, 1, floats=True), tokens(shape, 0.3, 2)
    seen = AttentionInput.of(AttentionRecord(query, key, value, scale=0.125, softmax=True))
    assert seen.query_key_first[:, 1].tolist() == (5 * (value != 0).flatten(1).sum(1)).tolist()
    assert seen.binary == (False, False, True)


def test_a_scale_that_is_nearly_nothing_changes_no_coincidence() -> None:
    shape = (1, 2, 2, 5, 4)
    query, key, value = (tokens(shape, 0.6, seed).float() for seed in range(3))
    large, small = (
        AttentionInput.of(AttentionRecord(query, key, value, scale=scale, softmax=False)) for scale in (1.0, 1e-60)
    )
    assert_same(large, small)


def test_attention_adds_up_over_batches() -> None:
    shape, pieces = (3, 4, 2, 5, 6), []
    query, key, value = (tokens(shape, 0.4, seed) for seed in range(3))
    whole = AttentionInput.of(AttentionRecord(query, key, value, scale=0.125, softmax=False))
    for part in (slice(0, 1), slice(1, 4)):
        piece = AttentionRecord(query[:, part], key[:, part], value[:, part], scale=0.125, softmax=False)
        pieces.append(AttentionInput.of(piece))
    pieces[0].add(pieces[1])
    assert_same(pieces[0], whole)
    assert whole.query_key_first.dtype == whole.key_value_first.dtype == np.int64
    assert whole.query_total.dtype == np.float64


def test_one_odd_entry_of_one_factor_is_reported() -> None:
    shape = (2, 2, 2, 3, 4)
    for odd in range(3):
        factors = [tokens(shape, 0.5, seed) for seed in range(3)]
        factors[odd][1, 0, 1, 2, 3] = 2
        seen = AttentionInput.of(AttentionRecord(*factors, scale=1.0, softmax=False))
        assert seen.num_not_spikes.tolist() == [int(place == odd) for place in range(3)]
        assert seen.binary == tuple(place != odd for place in range(3))
