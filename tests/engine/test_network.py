"""The native network is safe to build from any arrays: wrong ones raise, and none is read beyond its end."""

import numpy as np
import pytest
from tests.engine.drawn import BEST

from spikformer import _native

pytestmark = pytest.mark.core

NEURON = (0.5, 1.0, 1.0, 0.0)
PARTS = ("query", "key", "value", "projection", "hidden", "output")


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def stem(num_stages: int = 1, channels: int = 3, pooled: bool = False) -> _native.Network:
    """Stages of equally many channels in and out, and the position embedding."""
    network = _native.Network(BEST, 1)
    for index in range(num_stages):
        network.add_stage(f"stages.{index}", zeros(channels, 9, channels), zeros(channels), NEURON, pooled)
    network.set_position("position", zeros(channels, 9, channels), zeros(channels), NEURON)
    return network


def complete(channels: int = 3, mixes: bool = True) -> _native.Network:
    network = stem(channels=channels)
    network.begin_block("block", 1, 1.0, 1, NEURON, mixes)
    for part in PARTS:
        network.set_block_layer(part, part, zeros(channels, 1, channels), zeros(channels), NEURON)
    network.set_head(zeros(2, channels), np.arange(2, dtype=np.float32))
    return network


def test_a_complete_network_answers() -> None:
    logits = np.empty((4, 1, 2), np.float32)
    complete().run(zeros(1, 3, 2, 2), 4, None, None, logits)
    assert (logits == [0, 1]).all()


def test_a_head_needs_an_embedding_to_read() -> None:
    network = _native.Network(BEST, 1)
    with pytest.raises(ValueError, match="head"):
        network.set_head(zeros(2, 0), zeros(2))
    with pytest.raises(ValueError, match="head"):
        stem().set_head(zeros(2, 2), zeros(2))


def test_the_position_embedding_is_set_before_what_reads_it() -> None:
    network = stem()
    network.set_head(zeros(2, 3), zeros(2))
    with pytest.raises(ValueError, match="position embedding"):
        network.set_position("position", zeros(3, 9, 3), zeros(3), NEURON)


def test_halvings_do_not_overflow() -> None:
    stem(32, channels=1, pooled=True)
    with pytest.raises(ValueError, match="at most 32 stages"):
        stem(33, channels=1, pooled=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_are_finite(value: float) -> None:
    network = _native.Network(BEST, 1)
    for weights, bias in ((zeros(3, 9, 3) + value, zeros(3)), (zeros(3, 9, 3), zeros(3) + value)):
        with pytest.raises(ValueError, match="finite"):
            network.add_stage("stage", weights.astype(np.float32), bias.astype(np.float32), NEURON, False)


@pytest.mark.parametrize(("size", "time_steps"), [(2, 2**50), (2**28, 1)])
def test_sizes_that_overflow_are_no_memory(size: int, time_steps: int) -> None:
    frames, logits = np.empty((0, 3, size, size), np.float32), np.empty((time_steps, 0, 2), np.float32)
    with pytest.raises(MemoryError):
        complete().run(frames, time_steps, None, None, logits)


@pytest.mark.parametrize("way", [-1, 3, 2**31 - 1])
def test_a_way_is_one_of_three(way: int) -> None:
    network = complete()
    with pytest.raises(ValueError, match="way must be 0, 1 or 2"):
        network.way = way
    assert network.way == 0


def test_a_call_of_no_samples_takes_no_memory() -> None:
    network = complete()
    network.run(np.empty((0, 3, 2, 2), np.float32), 2**38, None, None, np.empty((2**38, 0, 2), np.float32))
    assert network.buffer_bytes == 0
