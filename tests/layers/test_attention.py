"""Products of Q, K, V: order, exactness, cost. Every variant: what its Q, K, V are, how it mixes, what learns."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mistakes import field_error
from torch.utils.flop_counter import FlopCounterMode

from spikformer.analysis.specimens import random_spikes
from spikformer.layers import AttentionVariant, SpikingSelfAttention, TokenMixing, register_attention
from spikformer.layers.attention import (
    dilate_map,
    key_value_first,
    linear_product,
    merge_heads,
    pool_tokens,
    query_key_first,
    softmax_product,
    split_heads,
)
from spikformer.neurons import LIF

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


VARIANTS = ["ssa", "identity", "relu", "leaky_relu", "softmax", "softmax_float_value", "none", "random"]


def attention(variant: str = "ssa", **options) -> SpikingSelfAttention:
    return SpikingSelfAttention(32, 4, variant=variant, **options).double()


def parts(module: SpikingSelfAttention, x: torch.Tensor) -> dict[str, torch.Tensor]:
    seen = {}
    for name in ("query", "key", "value"):
        if hasattr(module, name):
            getattr(module, name).register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, out))
    module.neuron.register_forward_hook(lambda _m, inputs, _o: seen.__setitem__("mixed", inputs[0]))
    module(x)
    return seen


def binary(x: torch.Tensor) -> bool:
    return bool(((x == 0) | (x == 1)).all())


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_is_what_its_row_says(variant: str) -> None:
    x = torch.randint(0, 3, (2, 3, 10, 32)).double()  # [T, B, N, D]
    module = attention(variant)
    seen = parts(module, x)
    spiking_query = variant in ("ssa", "random")
    spiking_value = variant != "softmax_float_value"
    assert binary(seen["value"]) == spiking_value
    if variant == "none":
        assert "query" not in seen
        assert torch.equal(seen["mixed"], seen["value"])
        return
    assert binary(seen["query"]) == binary(seen["key"]) == spiking_query
    assert (seen["query"] >= 0).all() == (variant in ("ssa", "random", "relu"))
    q, k, v = (split_heads(seen[name].flatten(0, 1), 4) for name in ("query", "key", "value"))
    scores = torch.softmax(q @ k.mT / 8**0.5, dim=-1) if variant.startswith("softmax") else q @ k.mT * 0.125
    expected = scores @ v
    assert torch.allclose(seen["mixed"].flatten(0, 1), merge_heads(expected), atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_output_is_spikes_and_everything_trainable_learns(variant: str) -> None:
    module = attention(variant, product_neuron=lambda: LIF(v_threshold=0.05))
    out = module(torch.randint(0, 3, (4, 2, 10, 32)).double())
    assert binary(out)
    out.sum().backward()
    frozen = {name for name, p in module.named_parameters() if not p.requires_grad}
    assert all(name.startswith(("query.", "key.")) for name in frozen)
    assert bool(frozen) == (variant == "random")
    learnt = {name for name, p in module.named_parameters() if p.grad is not None and p.grad.abs().sum() > 1e-30}
    norm_hides = {name for name, _ in module.named_parameters() if name.endswith("linear.bias")}
    assert {name for name, p in module.named_parameters() if p.requires_grad} - norm_hides <= learnt


def test_each_time_step_mixes_on_its_own() -> None:
    module = attention("ssa").eval()
    x = torch.randint(0, 3, (2, 1, 10, 32)).double()
    other = x.clone()
    other[1] = 0
    assert torch.equal(module(x)[0], module(other)[0])


def test_a_learnable_scale_learns_from_where_it_starts() -> None:
    module = attention("ssa", learnable_scale=True, scale=0.25)
    assert module.mixing.scale.item() == 0.25
    out = module(torch.randint(0, 3, (2, 2, 10, 32)).double())
    out.sum().backward()
    assert module.mixing.scale.grad.abs() > 0


def test_the_scale_has_an_effect() -> None:
    x, mixed = torch.randint(0, 3, (2, 2, 10, 32)).double(), []
    for scale in (0.125, 0.25):
        torch.manual_seed(1)
        mixed.append(parts(attention("ssa", scale=scale), x)["mixed"])
    assert mixed[0].sum() > 0
    assert torch.equal(mixed[1], mixed[0] * 2)


def test_the_query_key_pool_widens_q_and_k_only() -> None:
    x = torch.randint(0, 3, (2, 2, 10, 32)).double()
    torch.manual_seed(0)
    plain = parts(attention("ssa"), x)
    torch.manual_seed(0)
    pooled = parts(attention("ssa", qk_pool=3), x)
    assert torch.equal(plain["query"], pooled["query"])
    assert (pooled["mixed"] >= plain["mixed"]).all()
    assert (pooled["mixed"] > plain["mixed"]).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_product_is_counted_in_float32(dtype) -> None:
    """5001 · 8 is beyond what fp16 can count, and no integer in bf16."""
    mixing = TokenMixing(1, AttentionVariant(linear_product), scale=1.0).eval()
    ones = torch.ones(1, 1, 5001, 8, dtype=dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = mixing(ones, ones, ones)
    assert mixed.dtype == torch.float32
    assert (mixed == 5001 * 8).all()


@pytest.mark.parametrize("variant", ["token", "gated_keys"])
def test_a_gate_on_the_keys_is_built_in_or_from_outside(variant: str) -> None:
    """Tokens are kept or dropped, head by head, by spikes of the sum of their queries."""

    def product(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return query.sum(-1, keepdim=True)

    register_attention("gated_keys", AttentionVariant(product, value=None, scaled=False, gate="key"))
    module, seen = attention(variant), {}
    for name in ("query", "key", "neuron"):
        getattr(module, name).register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, out))
    module.projection.register_forward_pre_hook(lambda _m, inputs: seen.__setitem__("masked", inputs[0]))
    module(torch.randint(0, 3, (2, 3, 10, 32)).double())
    query, key = (seen[name].unflatten(-1, (4, 8)) for name in ("query", "key"))  # [T, B, N, h, d]
    mask = LIF(v_threshold=0.5)(query.sum(-1))
    assert torch.equal(seen["neuron"], mask)
    assert torch.equal(seen["masked"], (key * mask[..., None]).flatten(-2))
    assert 0 < mask.mean() < 1
    assert not hasattr(module, "value")


def test_a_spike_spreads_to_its_neighbours_in_rows_and_columns() -> None:
    tokens = torch.zeros(1, 12, 2)
    tokens[0, 5, 1] = 1  # row 1, column 1 of 3×4
    spread = dilate_map(tokens, (3, 4))
    assert spread[0, :, 1].view(3, 4).tolist() == [[1, 1, 1, 0]] * 3
    assert not spread[0, :, 0].any()


def test_dilated_variants_need_a_grid() -> None:
    with field_error("grid"):
        SpikingSelfAttention(8, 2, variant="spike_driven_dilated")
    attention = SpikingSelfAttention(8, 2, variant="spike_driven_dilated", grid=(2, 3))
    assert attention(torch.randn(4, 2, 6, 8)).shape == (4, 2, 6, 8)


def test_membranes_have_a_neuron_in_front_and_none_behind() -> None:
    attention = SpikingSelfAttention(8, 2, membrane=True)
    membrane = attention(torch.randn(4, 2, 6, 8))
    assert not set(membrane.unique().tolist()) <= {0.0, 1.0}
    names = {name for name, module in attention.named_modules() if isinstance(module, LIF)}
    assert names == {"input_neuron", "query.neuron", "key.neuron", "value.neuron", "neuron"}


def test_a_batch_leak_takes_samples_for_steps_in_the_projection_alone() -> None:
    torch.manual_seed(0)
    module = attention("ssa", batch_leak=True).eval()
    torch.nn.init.uniform_(module.projection.norm.bias, 0.5, 1.5)
    plain = attention("ssa").eval()
    plain.load_state_dict(module.state_dict())
    x, current = torch.randint(0, 3, (3, 4, 10, 32)).double(), []
    module.projection.norm.register_forward_hook(lambda _m, _i, out: current.append(out))
    leaking = module(x)
    expected = LIF()(current[0].view(12, 10, 32)).view(3, 4, 10, 32)  # step t of sample b is t·B + b
    assert torch.equal(leaking, expected)
    assert not torch.equal(leaking, plain(x))
    assert torch.equal(module(x[:, :1]), plain(x[:, :1])), "a batch of one has nobody to leak into"
