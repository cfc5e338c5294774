"""Products of Q, K, V: order, exactness, cost."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from spikformer.analysis.specimens import random_spikes
from spikformer.layers.mixing import (
    key_value_first,
    linear_product,
    merge_heads,
    pool_tokens,
    query_key_first,
    softmax_product,
    split_heads,
)

pytestmark = pytest.mark.core


@given(tokens=st.integers(1, 70), features=st.integers(1, 70), density=st.floats(0, 1), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_the_order_is_free_on_spikes_to_the_last_bit(tokens: int, features: int, density: float, seed: int) -> None:
    q, k, v = (random_spikes((2, 3, tokens, features), density, seed + i) for i in range(3))
    assert torch.equal(query_key_first(q, k, v), key_value_first(q, k, v))
    assert torch.equal(linear_product(q, k, v), query_key_first(q, k, v))


@pytest.mark.parametrize(("tokens", "features"), [(64, 16), (16, 64), (32, 32)])
def test_the_cheaper_order_is_taken(tokens: int, features: int) -> None:
    q = k = v = torch.ones(1, 1, tokens, features)
    with FlopCounterMode(display=False) as counter:
        linear_product(q, k, v)
    assert counter.get_total_flops() == 4 * tokens * features * min(tokens, features)


def test_softmax_product_is_scaled_dot_product_attention() -> None:
    q, k, v = (torch.randn(2, 3, 10, 8, dtype=torch.float64) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(softmax_product(q, k, v), expected, atol=1e-12)


def test_heads_split_and_merge() -> None:
    x = torch.randn(2, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    assert torch.equal(heads[:, 1], x[..., 4:8])
    assert torch.equal(merge_heads(heads), x)


def test_pooling_tokens_is_the_maximum_of_neighbours() -> None:
    x = torch.tensor([[[0.0], [1.0], [0.0], [0.0], [0.0]]])
    assert pool_tokens(x, 3).flatten().tolist() == [1, 1, 1, 0, 0]
