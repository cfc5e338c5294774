"""Patch splitting: any number of blocks, any pooling pattern, any size that the pooling divides."""

import pytest
import torch

from spikformer.layers import ConvNorm, PatchSplitting, PreActivationConv, SpikingPatchSplitting
from spikformer.layers.stem import to_tokens

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("pool_stages", "size", "tokens"),
    [
        ((False, False, True, True), (32, 32), 64),
        ((True, True, True, True), (64, 32), 8),
        ((True,), (6, 10), 15),
        ((False,), (3, 5), 15),
        ((False, True, False), (6, 4), 6),
        ((True, False, True, False, True), (16, 8), 2),
    ],
)
def test_blocks_and_pools(pool_stages: tuple, size: tuple[int, int], tokens: int) -> None:
    widths = [8] * (len(pool_stages) - 1) + [32]
    stem = SpikingPatchSplitting(3, widths, pool_stages)
    assert stem(torch.randn(2, 3, 3, *size)).shape == (2, 3, tokens, 32)
    assert [stage.conv.out_channels for stage in stem.stages] == widths


def test_tokens_are_spikes_plus_position_spikes_in_row_major_order() -> None:
    stem, seen = SpikingPatchSplitting(3, (16, 32), (False, True)), {}
    stem.position.register_forward_hook(lambda _m, inputs, out: seen.update(x=inputs[0], position=out))
    tokens = stem(torch.randn(2, 3, 3, 8, 16))
    total = seen["x"] + seen["position"]
    assert set(tokens.unique().tolist()) <= {0.0, 1.0, 2.0}
    assert torch.equal(tokens[1, 2, 3 * 8 + 5], total[1, 2, :, 3, 5])
    assert tokens.is_contiguous(), "a view of the channels-last map, not a copy in another order"


@pytest.mark.parametrize("pool_after", ["neuron", "norm"])
def test_a_pool_of_currents_comes_before_the_neuron(pool_after: str) -> None:
    stem, frames = SpikingPatchSplitting(3, (16, 32), (False, True), pool_after=pool_after), torch.randn(2, 3, 3, 8, 16)
    fired = {}
    stem.stages[1].neuron.register_forward_hook(lambda _m, _i, spikes: fired.update(shape=spikes.shape))
    assert stem(frames).shape == (2, 3, 32, 32)
    assert fired["shape"][-2:] == ((8, 16) if pool_after == "neuron" else (4, 8))


def test_a_static_image_is_pooled_once() -> None:
    stem = SpikingPatchSplitting(3, (16, 32), (True, True), pool_after="norm").double().eval()
    image = torch.randn(1, 2, 3, 8, 8, dtype=torch.float64) * 3
    assert torch.equal(stem(image, repeats=4), stem(image.expand(4, -1, -1, -1, -1)))


def test_tokens_may_be_membranes_with_or_without_a_shortcut() -> None:
    stages = [ConvNorm(3, 8, pooled=True)]
    position = PreActivationConv(8, 8)
    frames = torch.randn(2, 3, 3, 8, 8)
    with_shortcut, without = PatchSplitting(stages, position).eval(), PatchSplitting(stages, position, shortcut=False)
    membrane = to_tokens(stages[0](frames))
    assert torch.allclose(with_shortcut(frames), membrane + without(frames), atol=1e-6)
