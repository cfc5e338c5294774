"""Embeddings: two paths from one fork, halved by pools or strides, of spikes or membranes."""

import pytest
import torch
from tests.mistakes import field_error
from torch import nn

from spikformer.layers import ConvEmbedding, ConvNorm, PreActivationConv, SpikingConv
from spikformer.layers.time import over_tokens, to_tokens
from spikformer.neurons import LIF

pytestmark = pytest.mark.core


def neurons(module: nn.Module) -> set[str]:
    return {name for name, part in module.named_modules() if isinstance(part, LIF)}


def test_spikes_are_summed() -> None:
    embedding = ConvEmbedding(3, (4,), (8, 8), (True, True, False)).double()
    y = embedding(torch.randn(4, 2, 3, 16, 16, dtype=torch.float64))
    assert y.shape == (4, 2, 8, 4, 4)
    assert set(y.unique().tolist()) <= {0.0, 1.0, 2.0}
    assert {type(unit) for unit in (*embedding.stages, *embedding.branch, embedding.shortcut)} == {SpikingConv}
    assert embedding.shortcut.conv.stride == (2, 2)
    assert neurons(embedding) == {"stages.0.neuron", "branch.0.neuron", "branch.1.neuron", "shortcut.neuron"}


@pytest.mark.parametrize("strided", [False, True])
def test_membranes_share_the_spikes_of_one_fork(strided: bool) -> None:
    embedding = ConvEmbedding(3, (4,), (8, 8), (True, True, False), membrane=True, strided=strided)
    seen = []
    for unit in (embedding.branch[0], embedding.shortcut):
        unit.register_forward_pre_hook(lambda _m, inputs: seen.append(inputs[0]))
    y = embedding(torch.randn(4, 2, 3, 16, 16))
    assert y.shape == (4, 2, 8, 4, 4)
    assert seen[0] is seen[1]
    assert set(seen[0].unique().tolist()) == {0.0, 1.0}
    assert not set(y.unique().tolist()) <= {0.0, 1.0, 2.0}
    assert [type(unit) for unit in embedding.branch] == [ConvNorm, PreActivationConv]
    assert embedding.stages[0].conv.stride == ((2, 2) if strided else (1, 1))
    assert embedding.stages[0].pooled is not strided
    assert neurons(embedding) == {"neuron", "branch.1.neuron"}


def test_a_shortcut_is_pooled_or_strided() -> None:
    x = torch.randn(2, 3, 4, 8, 8)
    pooled = ConvEmbedding(4, (), (8, 8), (True, False), membrane=True, pooled_shortcut=True)
    strided = ConvEmbedding(4, (), (8, 8), (False, True), membrane=True)
    assert pooled(x).shape == strided(x).shape == (2, 3, 8, 4, 4)
    assert (pooled.shortcut.pooled, pooled.shortcut.conv.stride) == (True, (1, 1))
    assert (strided.shortcut.pooled, strided.shortcut.conv.stride) == (False, (2, 2))
    assert [unit.pooled for unit in pooled.branch] == [True, False]
    assert [unit.pooled for unit in strided.branch] == [False, True]


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("membrane", {"strided": True}),
        ("membrane", {"pooled_shortcut": True}),
        ("pooled_shortcut", {"pooled_shortcut": True, "membrane": True}),
    ],
)
def test_options_that_would_have_no_effect_or_do_not_fit_raise(field: str, options: dict[str, bool]) -> None:
    with field_error(field):
        ConvEmbedding(3, (4,), (8, 8), (False, True, True), **options)


def test_a_function_of_tokens_leaves_a_map() -> None:
    x = torch.arange(2 * 3 * 4 * 5 * 6).view(2, 3, 4, 5, 6)
    assert torch.equal(over_tokens(lambda tokens: tokens * 2, x), x * 2)
    assert to_tokens(x)[1, 2, 7].tolist() == x[1, 2, :, 1, 1].tolist()
