"""Linear layers on tokens, and products whose results do not depend on the batch.

A BLAS library may split a long sum differently when rows are added to a matrix, so a sample's product can change in
its last bit with the batch it travels in. Inside `batch_invariant()` every sample is multiplied on its own: in float64,
streaming, batched and multi-step results are then equal, not close. `spikformer verify` proves that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from spikformer.errors import FieldError
from spikformer.layers.time import Stream, apply_neuron, over_time
from spikformer.neurons import LIF, NeuronFactory

_alone = False


@contextmanager
def batch_invariant() -> Iterator[None]:
    """Multiply every sample on its own, in the whole process: slow, and for proofs."""
    global _alone
    before, _alone = _alone, True
    try:
        yield
    finally:
        _alone = before


def by_sample(function: Callable[..., Tensor], *samples: Tensor) -> Tensor:
    """function(*samples) of tensors [B, …], one sample at a time inside `batch_invariant()`."""
    if not _alone or torch.jit.is_tracing():  # a trace is for any batch
        return function(*samples)
    alone = zip(*(x.split(1) for x in samples), strict=True)
    return torch.cat([function(*(x.clone() for x in sample)) for sample in alone])


class Linear(nn.Linear):
    """On samples [B, …, in_features]."""

    def forward(self, x: Tensor) -> Tensor:
        return by_sample(super().forward, x)


class LinearNorm(nn.Module):
    """BN(x W + b) on tokens [T, B, N, D]: the current of a neuron, or a membrane to add to."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.linear = Linear(in_features, out_features, bias=bias)
        self.norm = nn.BatchNorm1d(out_features)

    def current(self, x: Tensor) -> Tensor:
        return over_time(self._current_of_samples, x)

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        return self.current(x)

    def _current_of_samples(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return self.norm(y.flatten(0, 1)).view_as(y)


class SpikingLinear(LinearNorm):
    """SN(BN(x W + b)) on tokens [T, B, N, D]; the neuron may be an activation where a variant passes floats on."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, neuron: NeuronFactory = LIF) -> None:
        super().__init__(in_features, out_features, bias)
        self.neuron = neuron()

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        return apply_neuron(self.neuron, self.current(x), stream)


class BatchSequenceLinear(SpikingLinear):
    """SN(BN(x W + b)) whose neurons treat the samples of a batch as steps: one sequence of T·B, sample by sample.

    A sample's voltage leaks into the next sample, so that results depend on the batch, and there is no streaming.
    """

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        if stream is not None:
            raise FieldError("neuron", "Neurons that treat the samples of a batch as steps cannot stream.")
        return over_time(self.neuron, self.current(x))


class PreActivationLinear(LinearNorm):
    """BN(SN(x) W + b): the neuron reads a membrane [T, B, N, D], so that the weights see spikes."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, neuron: NeuronFactory = LIF) -> None:
        super().__init__(in_features, out_features, bias)
        self.neuron = neuron()

    def forward(self, x: Tensor, stream: Stream | None = None) -> Tensor:
        return self.current(apply_neuron(self.neuron, x, stream))
