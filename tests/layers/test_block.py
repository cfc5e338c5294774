"""Residual blocks: how outputs and shortcuts join, and pools over time."""

import pytest
import torch

from spikformer.layers import MaxPool, ResidualBlock, SpikingConv
from spikformer.layers.time import Stream, StreamState
from spikformer.neurons import IF

pytestmark = pytest.mark.core

OUTPUT, SHORTCUT = torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 0.0, 1.0])
TABLE = {"add": [0.0, 1.0, 1.0, 2.0], "and": [0.0, 0.0, 0.0, 1.0], "iand": [0.0, 1.0, 0.0, 0.0]}


class Fixed(torch.nn.Module):
    """A layer that returns the same whatever it reads."""

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: torch.Tensor, stream: Stream | None = None) -> torch.Tensor:
        return self.value


@pytest.mark.parametrize("join", TABLE)
def test_joins_of_spikes(join: str) -> None:
    assert ResidualBlock([Fixed(OUTPUT)], join=join)(SHORTCUT).tolist() == TABLE[join]
    assert ResidualBlock([Fixed(OUTPUT)], Fixed(SHORTCUT), join)(torch.ones(4)).tolist() == TABLE[join]


def test_layers_run_in_order_and_stream_their_voltages() -> None:
    layers = [SpikingConv(2, 3, IF, kernel_size=1, stride=2), SpikingConv(3, 4, IF)]
    block = ResidualBlock(layers, SpikingConv(2, 4, IF, kernel_size=1, stride=2)).eval()
    x = torch.rand(3, 2, 2, 8, 6) * 4
    together = block(x)
    assert together.shape == (3, 2, 4, 4, 3)
    state, steps = StreamState(2), []
    for frame in x:
        stream = Stream(state)
        steps.append(block(frame[None], stream))
        state = stream.state()
    assert len(state.voltages) == 3
    assert torch.allclose(torch.cat(steps), together)


def test_a_pool_sees_every_step_and_the_first_of_equals_learns() -> None:
    x = torch.tensor([[1.0, 1.0], [1.0, 0.0]]).expand(2, 1, 1, 2, 2).clone().requires_grad_()
    y = MaxPool(2)(x)
    assert y.shape == (2, 1, 1, 1, 1)
    y.sum().backward()
    assert x.grad[:, 0, 0].tolist() == 2 * [[[1.0, 0.0], [0.0, 0.0]]]
