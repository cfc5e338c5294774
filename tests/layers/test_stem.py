"""Patch splitting: any number of blocks, any pooling pattern, any size that the pooling divides."""

import pytest
import torch

from spikformer import ModelConfig
from spikformer.layers import SpikingPatchSplitting

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
    config = ModelConfig(image_size=size, embed_dim=32, num_heads=4, pool_stages=pool_stages)
    stem = SpikingPatchSplitting(config)
    out, state = stem(torch.randn(2, 3, 3, *size))
    assert out.shape == (2, 3, tokens, 32)
    assert config.num_tokens == tokens
    assert len(state.stages) == len(pool_stages)
    rest = stem.initial_state(3, *size, like=out)
    assert [v.shape for v in rest.stages] == [v.shape for v in state.stages]
    assert rest.position.shape == state.position.shape


def test_tokens_are_spikes_plus_position_spikes_in_row_major_order() -> None:
    config = ModelConfig(image_size=(8, 16), embed_dim=32, num_heads=4, pool_stages=(False, True))
    stem, seen = SpikingPatchSplitting(config), {}
    stem.position.register_forward_hook(lambda _m, inputs, out: seen.update(x=inputs[0], position=out[0]))
    tokens, _ = stem(torch.randn(2, 3, 3, 8, 16))
    total = seen["x"] + seen["position"]
    assert set(tokens.unique().tolist()) <= {0.0, 1.0, 2.0}
    assert torch.equal(tokens[1, 2, 3 * 8 + 5], total[1, 2, :, 3, 5])
    assert tokens.is_contiguous(), "a view of the channels-last map, not a copy in another order"
