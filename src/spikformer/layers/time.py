"""Axes: the one place that merges and splits time, turns maps into tokens, and carries voltages from step to step.

Convolutions, linear layers and norms know nothing of time: they see T·B samples. Neurons see the T steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch import Tensor, nn

from spikformer.errors import FieldError
from spikformer.neurons import SpikingNeuron


def merge_time(x: Tensor) -> Tensor:
    """[T, B, …] to [T·B, …]."""
    return x.flatten(0, 1)


def split_time(x: Tensor, time_steps: int) -> Tensor:
    """[T·B, …] to [T, B, …]."""
    return x.unflatten(0, (time_steps, -1))


def over_time(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply a function of samples to every step of [T, B, …] in one call."""
    return split_time(function(merge_time(x)), x.shape[0])


def repeat_over_time(x: Tensor, time_steps: int) -> Tensor:
    """One step [1, B, …] repeated `time_steps` times, without a copy; several steps stay as they are."""
    return x.expand(time_steps, *[-1] * (x.ndim - 1))


def to_tokens(x: Tensor) -> Tensor:
    """A map [T, B, D, H, W] as tokens [T, B, N, D], row by row; of a channels-last map it is a view."""
    return x.flatten(-2).transpose(-1, -2)


def over_tokens(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply a function of tokens [T, B, N, D] to a map [T, B, D, H, W]."""
    return function(to_tokens(x)).transpose(-1, -2).unflatten(-1, x.shape[-2:])


class StreamState(NamedTuple):
    """What a network remembers between two steps of a stream."""

    batch_size: int
    voltages: tuple[Tensor, ...] | None = None
    """Of each layer of neurons, in the order they run, [B, …]; None is a network at rest."""


class Stream:
    """One step on its way through a network: each neuron takes its voltage as it runs, and leaves the new one.

    Layers hand it on to what is inside them; without a stream (None), every neuron starts from rest.
    """

    def __init__(self, state: StreamState) -> None:
        self._batch_size = state.batch_size
        self._before: Iterator[Tensor] | None = None if state.voltages is None else iter(state.voltages)
        self._after: list[Tensor] = []

    def fire(self, neuron: SpikingNeuron, current: Tensor) -> Tensor:
        """Spikes [T, …] of a neuron that continues from its voltage."""
        voltage = None
        if self._before is not None:
            voltage = next(self._before, None)
            if voltage is None:
                raise FieldError("state", f"The state has {len(self._after)} voltages, this network needs more; {_FIX}")
        spikes, voltage = neuron(current, voltage, return_state=True)
        self._after.append(voltage)
        return spikes

    def state(self) -> StreamState:
        """The state after the step."""
        left = 0 if self._before is None else sum(1 for _ in self._before)
        if left:
            raise FieldError("state", f"The state has {left} voltages more than this network; {_FIX}")
        return StreamState(self._batch_size, tuple(self._after))


_FIX = "make one with initial_state(batch_size)."


def apply_neuron(neuron: nn.Module, current: Tensor, stream: Stream | None) -> Tensor:
    """What a neuron, or an activation in its place, makes of currents [T, …]."""
    if stream is None or not isinstance(neuron, SpikingNeuron):
        return neuron(current)
    return stream.fire(neuron, current)
