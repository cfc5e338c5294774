"""Watching a model from outside, by forward hooks. No layer knows that it is watched.

    with sf.record(model) as seen:
        model(images)
    seen.firing_rates()["blocks.0.attention.query.neuron"]     # [T]
    seen.attention("blocks.0.attention").maps()                # [T, B, h, N, N]

Keys are the names that `model.named_modules()` gives. What is kept is the last forward pass; `analysis.firing` streams
over a whole data set instead. `trace_layer` picks single neurons of a record for figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from spikformer.errors import FieldError, UnknownNameError
from spikformer.layers.attention import TokenMixing, linear_product, softmax_product, split_heads
from spikformer.models import SpikingNetwork
from spikformer.neurons import Dynamics, SpikingNeuron, reference

_Value = TypeVar("_Value")
_NUM_TRACES = _NUM_MAPS = 4


@dataclass(frozen=True)
class AttentionRecord:
    """What an attention layer mixed: Q and K after their pool, and V, each [T, B, h, N, d]; `scale` is s."""

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    softmax: bool

    def maps(self) -> Tensor:
        """How much each token takes from each, [T, B, h, N, N]: Q Kᵀ · s, recomputed whatever order ran."""
        scores = self.query @ self.key.transpose(-2, -1)
        if self.softmax:
            return torch.softmax(scores / math.sqrt(self.query.shape[-1]), dim=-1)
        return scores * self.scale


class _Start(NamedTuple):
    """A neuron layer as the pass found it; τ may be learnt, and a stream resumes from a voltage."""

    voltage: Tensor | None
    gain: float
    dynamics: Dynamics


@dataclass
class Record:
    """The last forward pass of a watched model; tensors are detached, time first."""

    spikes: dict[str, Tensor] = field(default_factory=dict)
    """What each neuron layer fired, [T, B, …]."""
    currents: dict[str, Tensor] = field(default_factory=dict)
    """What each neuron layer was driven by, [T, B, …]."""
    products: dict[str, Tensor] = field(default_factory=dict)
    """Q Kᵀ V · s of each attention layer, [T, B, N, D], before its neuron."""
    attentions: dict[str, AttentionRecord] = field(default_factory=dict)
    _starts: dict[str, _Start] = field(default_factory=dict, repr=False)

    def firing_rates(self) -> dict[str, Tensor]:
        """Spikes per neuron after each step, [T], by layer."""
        return {name: spikes.float().flatten(1).mean(1) for name, spikes in self.spikes.items()}

    def spikes_of(self, layer: str) -> Tensor:
        return _look_up(self.spikes, layer, "neuron layer")

    def attention(self, layer: str) -> AttentionRecord:
        return _look_up(self.attentions, layer, "attention layer")

    def membrane(self, layer: str) -> Tensor:
        """H, the membrane before each spike, [T, B, …] in float32 or wider, computed again from the currents."""
        current = _look_up(self.currents, layer, "neuron layer")
        if layer not in self._starts:
            raise FieldError(
                layer, f"The neurons of {layer!r} have a forward of their own, so their membrane is unknown."
            )
        current = current.to(torch.promote_types(current.dtype, torch.float32))
        start = self._starts[layer]
        _, _, membrane = reference.forward(current, start.voltage, start.gain, start.dynamics, keep_membrane=True)
        assert membrane is not None
        return membrane


def _look_up(kept: Mapping[str, _Value], layer: str, kind: str) -> _Value:
    if layer not in kept:
        raise UnknownNameError(kind, layer, kept, "" if kept else "nothing has run yet.")
    return kept[layer]


@contextmanager
def record(model: nn.Module) -> Iterator[Record]:
    """Watch every forward pass inside the block; the last one is kept."""
    seen = Record()

    def watch_neuron(name: str) -> Callable[..., None]:
        def hook(neuron: SpikingNeuron, inputs: tuple[Tensor, ...], output: Tensor | tuple[Tensor, Tensor]) -> None:
            seen.currents[name], seen.spikes[name] = inputs[0].detach(), spikes_in(output).detach()
            seen._starts.pop(name, None)
            if type(neuron).forward is SpikingNeuron.forward:
                voltage = inputs[1].detach() if len(inputs) > 1 and inputs[1] is not None else None
                seen._starts[name] = _Start(voltage, _number(neuron.gain()), neuron.dynamics)

        return hook

    def watch_mixing(name: str) -> Callable[..., None]:
        def hook(mixing: TokenMixing, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            layer = name.removesuffix(".mixing")
            seen.products[layer] = output.detach()
            if has_maps(mixing):
                seen.attentions[layer] = attention_record(mixing, *inputs)

        return hook

    with hooked(model, SpikingNeuron, watch_neuron), hooked(model, TokenMixing, watch_mixing):
        yield seen


def spikes_in(output: Tensor | tuple[Tensor, Tensor]) -> Tensor:
    """The spikes that a neuron returned, in a stream beside its voltage."""
    return output[0] if isinstance(output, tuple) else output


def has_maps(mixing: nn.Module) -> bool:
    """Whether a layer mixes tokens by Q Kᵀ, so that each takes from each."""
    return isinstance(mixing, TokenMixing) and mixing.variant.product in (linear_product, softmax_product)


def attention_record(mixing: TokenMixing, query: Tensor, key: Tensor, value: Tensor) -> AttentionRecord:
    """Q, K and V as a mixing layer multiplies them."""
    wide = torch.promote_types(value.dtype, torch.float32)
    tokens = mixing.pooled(query, key, value)
    query, key, value = (split_heads(x.detach().to(wide), mixing.num_heads) for x in tokens)
    return AttentionRecord(query, key, value, scale=_number(mixing.scale), softmax=mixing.softmax)


def _number(value: float | Tensor) -> float:
    """A constant, or what a learnt one is now."""
    return value.item() if isinstance(value, Tensor) else value


@contextmanager
def hooked(model: nn.Module, kind: type[nn.Module], make: Callable[[str], Callable[..., None]]) -> Iterator[None]:
    """Hooks on every module of a kind, made by `make(name)` and taken off at the end."""
    found = [(name, module) for name, module in model.named_modules() if isinstance(module, kind)]
    handles = [module.register_forward_hook(_watching(make(name))) for name, module in found]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _watching(hook: Callable[..., None]) -> Callable[..., None]:
    """The same hook, marked for `models.inspection`: it changes nothing."""
    hook.only_watches = True  # type: ignore[attr-defined]
    return hook


def spike_counts(model: nn.Module, x: Tensor) -> dict[str, tuple[int, int]]:
    """Spikes and neuron-steps of one forward pass, by the name of each neuron layer."""
    with torch.no_grad(), record(model) as seen:
        model(x)
    return {name: (int(spikes.count_nonzero()), spikes.numel()) for name, spikes in seen.spikes.items()}


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
    v_reset: float


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
        v_reset=neuron.dynamics.rest,
    )


def chosen_layer(seen: Record) -> str:
    """The neuron that reads Q Kᵀ V in the last block, the network's own; without one, the last layer."""
    if not seen.spikes:
        raise FieldError("neuron", "This is a conventional network: it has no neurons that fire.")
    inside = [f"{name}.neuron" for name in seen.attentions]
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
