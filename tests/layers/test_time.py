"""Merging, splitting and repeating time; voltages on their way through a network."""

import pytest
import torch
from tests.mistakes import field_error

from spikformer.layers.time import (
    Stream,
    StreamState,
    apply_neuron,
    merge_time,
    over_time,
    repeat_over_time,
    split_time,
)
from spikformer.neurons import LIF, PLIF, Activation

pytestmark = pytest.mark.core


def test_split_undoes_merge() -> None:
    x = torch.randn(4, 3, 2, 5)
    assert torch.equal(split_time(merge_time(x), 4), x)
    assert torch.equal(merge_time(x)[3 * 2 + 1], x[2, 1]), "steps outermost, samples inside"


def test_over_time_is_the_function_at_every_step() -> None:
    x = torch.randn(4, 3, 5)
    assert torch.equal(over_time(lambda s: s.cumsum(-1), x), torch.stack([step.cumsum(-1) for step in x]))


def test_repeating_makes_no_copy() -> None:
    x = torch.randn(1, 3, 5)
    repeated = repeat_over_time(x, 4)
    assert repeated.shape == (4, 3, 5)
    assert repeated.data_ptr() == x.data_ptr()
    assert repeated.stride(0) == 0


def run(x: torch.Tensor, stream: Stream | None) -> torch.Tensor:
    for neuron in (LIF(), Activation("relu"), PLIF()):
        x = apply_neuron(neuron, x * 2, stream)
    return x


def test_a_stream_hands_every_neuron_its_voltage() -> None:
    x, state, spikes = torch.randn(5, 3, 4) + 0.5, StreamState(3), []
    for step in x:
        stream = Stream(state)
        spikes.append(run(step[None], stream))
        before, state = state, stream.state()
        assert state is not before
        assert [voltage.shape for voltage in state.voltages] == [(3, 4)] * 2, "an activation has none"
    assert torch.equal(torch.cat(spikes), run(x, None))


@pytest.mark.parametrize("count", [1, 3])
def test_a_state_of_another_network_raises(count: int) -> None:
    def one_step(stream: Stream) -> StreamState:
        run(torch.randn(1, 3, 4), stream)
        return stream.state()

    with field_error("state"):
        one_step(Stream(StreamState(3, (torch.zeros(3, 4),) * count)))
