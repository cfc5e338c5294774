"""Every attention variant: what its Q, K, V are, how it mixes, what learns."""

import pytest
import torch

from spikformer import ModelConfig
from spikformer.layers import SpikingSelfAttention
from spikformer.layers.mixing import TokenMixing, merge_heads, split_heads

pytestmark = pytest.mark.core

VARIANTS = ["ssa", "identity", "relu", "leaky_relu", "softmax", "softmax_float_value", "none", "random"]


def attention(variant: str, **fields) -> SpikingSelfAttention:
    config = ModelConfig(embed_dim=32, num_heads=4, attention=variant, **fields)
    return SpikingSelfAttention(config).double()


def parts(module: SpikingSelfAttention, x: torch.Tensor) -> dict[str, torch.Tensor]:
    seen = {}
    for name in ("query", "key", "value"):
        if hasattr(module, name):
            getattr(module, name).register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, out[0]))
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
    module = attention(variant, attention_v_threshold=0.05)
    out, _ = module(torch.randint(0, 3, (4, 2, 10, 32)).double())
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
    assert torch.equal(module(x)[0][0], module(other)[0][0])


def test_a_learnable_scale_learns_from_where_it_starts() -> None:
    module = attention("ssa", learnable_scale=True, attention_scale=0.25)
    assert module.mixing.scale.item() == 0.25
    out, _ = module(torch.randint(0, 3, (2, 2, 10, 32)).double())
    out.sum().backward()
    assert module.mixing.scale.grad.abs() > 0


def test_the_scale_has_an_effect() -> None:
    x, mixed = torch.randint(0, 3, (2, 2, 10, 32)).double(), []
    for scale in (0.125, 0.25):
        torch.manual_seed(1)
        mixed.append(parts(attention("ssa", attention_scale=scale), x)["mixed"])
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
    """5001 · 8 is beyond what fp16 can count, and no whole number in bf16."""
    mixing = TokenMixing(ModelConfig(embed_dim=8, num_heads=1, attention_scale=1.0)).eval()
    ones = torch.ones(1, 1, 5001, 8, dtype=dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = mixing(ones, ones, ones)
    assert mixed.dtype == torch.float32
    assert (mixed == 5001 * 8).all()
