"""Masks of spikes as maps of what they let pass."""

import pytest
import torch
from torch import Tensor, nn

from spikformer.analysis.recorder import Record, mapped_layers, record
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.layers.attention import split_heads
from spikformer.models import Spikformer, build_model

pytestmark = pytest.mark.core

TINY = "spikformer_tiny_digits"


def watch(model: Spikformer, x: Tensor) -> Record:
    with torch.no_grad(), record(model) as seen:
        model(x)
    return seen


def test_a_mask_over_channels_is_shown_by_what_it_lets_pass() -> None:
    model = specimen(shrunk("spike_driven_transformer_2_256_cifar10"))
    seen = watch(model, frames_for(model.config, 2))
    heads, layer = model.config.num_heads, "blocks.1.attention"
    assert not seen.attentions
    assert list(seen.masks) == list(seen.token_maps()) == ["blocks.0.attention", layer]
    mask = seen.mask(layer)
    assert (mask.operand, mask.over_tokens) == ("query", False)
    query = split_heads(seen.spikes_of(f"{layer}.query.neuron"), heads)
    spikes = seen.spikes_of(f"{layer}.neuron").unflatten(-1, (heads, -1)).transpose(2, 3)  # [T, B, h, 1, d]
    assert torch.equal(mask.mask, spikes)
    expected = torch.where(spikes == 1, query, 0.0).mean(-1)
    assert torch.equal(seen.token_maps()[layer], expected)
    assert 0 < expected.mean() < query.mean(), "some of Q passes, not all"
    with pytest.raises(ValueError, match=layer):
        seen.attention(layer)


def test_a_dilated_mask_is_shown_as_it_is_used() -> None:
    model = specimen(shrunk("spike_driven_transformer_2_256_cifar10dvs"))
    layer, read = "blocks.0.attention", []
    model.blocks[0].attention.projection.linear.register_forward_hook(lambda _, inputs, output: read.append(inputs[0]))
    seen = watch(model, frames_for(model.config, 2))
    passed = split_heads(read[0].unflatten(0, (model.config.time_steps, -1)), model.config.num_heads)
    assert torch.equal(seen.token_maps()[layer], passed.mean(-1))


@pytest.mark.parametrize("name", ["qkformer_4_384_cifar10", "ms_qkformer_4_384_cifar10"])
def test_a_mask_over_tokens_is_a_map_itself(name: str) -> None:
    model = specimen(shrunk(name))
    seen = watch(model, frames_for(model.config, 2))
    first, second, *last = [f"blocks.{block}.attention" for block in range(4)]
    assert (list(seen.masks), list(seen.attentions)) == ([first, second], last)
    assert list(seen.token_maps()) == [first, second, *last], "in the order they run"
    mask = seen.mask(first)
    assert (mask.operand, mask.over_tokens) == ("key", True)
    shown = seen.token_maps()[first]
    assert torch.equal(shown, seen.spikes_of(f"{first}.neuron").transpose(2, 3))
    assert set(shown.unique().tolist()) == {0.0, 1.0}
    query = split_heads(seen.spikes_of(f"{first}.query.neuron"), model.config.num_heads)
    assert (shown[query.sum((0, -1)).expand(len(shown), -1, -1, -1) == 0] == 0).all(), "no mask without a spike of Q"
    received = seen.attention(last[0]).maps().mean(-2)
    assert torch.equal(seen.token_maps()[last[0]], received)


def test_layers_with_maps_are_known_by_their_block() -> None:
    def layers(name: str) -> dict[int, str]:
        return mapped_layers(build_model(shrunk(name)))

    assert layers(TINY) == {1: "blocks.0.attention", 2: "blocks.1.attention"}
    assert layers("maxformer_4_384_cifar10") == {3: "blocks.2.attention", 4: "blocks.3.attention"}
    assert list(layers("qkformer_4_384_cifar10")) == [1, 2, 3, 4]
    assert layers("sew_resnet_18_imagenet") == {}
    alone = nn.Sequential(nn.Identity(), build_model(shrunk(TINY)), build_model(shrunk(TINY)))
    assert list(mapped_layers(alone)) == [1, 2, 3, 4], "where a number names several, all are counted"
