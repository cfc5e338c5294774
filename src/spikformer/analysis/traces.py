"""What figures show of a record: single neurons of a layer over time, and the maps that a stem fires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from spikformer.analysis.recorder import Record
from spikformer.errors import FieldError
from spikformer.models import SpikingNetwork
from spikformer.neurons import SpikingNeuron

_NUM_TRACES = _NUM_MAPS = 4


@dataclass(frozen=True)
class LayerTraces:
    """A layer of neurons while the network saw one sample."""

    layer: str
    num_neurons: int
    """Of the layer; some of them are shown."""
    raster: np.ndarray
    """Spikes [T, some neurons], spread evenly over the layer."""
    membranes: np.ndarray
    """H before each spike, [T, a few neurons]."""
    spikes: np.ndarray
    """Of the same few."""
    names: list[str]
    """Of the same few."""
    v_threshold: float
    v_reset: float | None
    """None: a spike lowers the membrane by the threshold."""


def trace_layer(
    model: SpikingNetwork, seen: Record, layer: str, num_shown: int, traces: Sequence[int] = ()
) -> LayerTraces:
    """The spikes of a layer's neurons, and the membranes of some: `traces`, or four of different activity."""
    spikes = seen.spikes_of(layer).flatten(1)  # [T, neurons]
    neuron = model.get_submodule(layer)
    assert isinstance(neuron, SpikingNeuron)
    num_neurons = spikes.shape[1]
    for place in traces:
        if not 0 <= place < num_neurons:
            raise FieldError("traces", f"{layer} has {num_neurons} neurons, counted from 0; got {place}.")
    membranes = seen.membrane(layer).flatten(1)
    few = list(traces) or _few(spikes.sum(0), (membranes.amax(0) - neuron.dynamics.v_threshold).abs())
    return LayerTraces(
        layer=layer,
        num_neurons=num_neurons,
        raster=_array(spikes[:, evenly(num_neurons, num_shown)]),
        membranes=_array(membranes[:, few]),
        spikes=_array(spikes[:, few]),
        names=[f"neuron {place}" for place in few],
        v_threshold=neuron.dynamics.v_threshold,
        v_reset=neuron.dynamics.v_reset,
    )


def chosen_layer(seen: Record) -> str:
    """The neuron that reads the product of Q, K and V in the last block; without one, the last layer."""
    if not seen.spikes:
        raise FieldError("neuron", "This is a conventional network: it has no neurons that fire.")
    inside = [f"{name}.neuron" for name in seen.products]
    return next((name for name in reversed(inside) if name in seen.spikes), list(seen.spikes)[-1])


def stem_maps(seen: Record) -> dict[str, np.ndarray]:
    """Spikes of each stage of the stem, or of the first layers without one, summed over channels, [T, H, W]."""
    maps = {name: fired for name, fired in seen.spikes.items() if fired.ndim == 5}
    stages = {name: fired for name, fired in maps.items() if name.startswith(("stem.stages.", "stem.neuron"))}
    stages = stages or dict(islice(maps.items(), _NUM_MAPS))
    return {name: _array(fired[:, 0].sum(1)) for name, fired in stages.items()}


def evenly(count: int, most: int) -> list[int]:
    """At most so many of the numbers below `count`, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()


def _few(fired: Tensor, distance: Tensor) -> list[int]:
    """Neurons of different activity, the busiest first; of equals, the one whose peak is nearest to the threshold."""
    kinds = [int(distance.masked_fill(fired != number, torch.inf).argmin()) for number in fired.unique().flip(0)]
    return [kinds[place] for place in evenly(len(kinds), _NUM_TRACES)]


def _array(x: Tensor) -> np.ndarray:
    return x.float().numpy(force=True)
