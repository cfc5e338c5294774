"""Watching a model from outside, by forward hooks. No layer knows that it is watched.

    with sf.record(model) as seen:
        model(images)
    seen.firing_rates()["blocks.0.attention.query.neuron"]     # [T]
    seen.attention("blocks.0.attention").maps()                # [T, B, h, N, N]
    seen.token_maps()["blocks.0.attention"]                    # [T, B, h, N]

Keys are the names that `model.named_modules()` gives. What is kept is the last forward pass; `analysis.firing` streams
over a whole data set instead, and `analysis.traces` picks single neurons of a record for figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from spikformer.errors import FieldError, UnknownNameError
from spikformer.layers.attention import Gating, Operand, TokenMixing, linear_product, softmax_product, split_heads
from spikformer.layers.linear import BatchSequenceLinear
from spikformer.layers.time import merge_time, split_time
from spikformer.neurons import Dynamics, SpikingNeuron, reference

_Value = TypeVar("_Value")


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

    def token_map(self) -> Tensor:
        """How much each token is looked at, [T, B, h, N]: the mean, over those that look, of the size of maps."""
        return self.maps().abs().mean(-2)


@dataclass(frozen=True)
class MaskRecord:
    """The mask that attention without Q Kᵀ makes of spikes, and what it lets pass."""

    operand: Operand
    """What is masked: Q by the Spike-driven Transformer, K by token attention."""
    mask: Tensor
    """[T, B, h, N, 1], a spike for each token, or [T, B, h, 1, d], one for each channel."""
    masked: Tensor
    """The operand where the mask is 1, [T, B, h, N, d]."""

    @property
    def over_tokens(self) -> bool:
        return self.mask.shape[-2:] == (self.masked.shape[-2], 1)

    def token_map(self) -> Tensor:
        """How much of each token passes, [T, B, h, N].

        A mask over tokens is such a map itself. A mask over channels lies nowhere on the picture, as it is summed over
        all tokens; what it lets pass does: the share of a token's channels that fire and are not masked.
        """
        return (self.mask if self.over_tokens else self.masked).abs().mean(-1)


class _Start(NamedTuple):
    """A neuron layer as the pass found it; τ may be learnt, and a stream resumes from a voltage."""

    voltage: Tensor | None
    gain: float
    dynamics: Dynamics
    one_sequence: bool = False
    """Whether the samples of a batch were one sequence for it (`BatchSequenceLinear`)."""


@dataclass
class Record:
    """The last forward pass of a watched model; tensors are detached, time first."""

    spikes: dict[str, Tensor] = field(default_factory=dict)
    """What each neuron layer fired, [T, B, …]."""
    currents: dict[str, Tensor] = field(default_factory=dict)
    """What each neuron layer was driven by, [T, B, …]."""
    products: dict[str, Tensor] = field(default_factory=dict)
    """Q Kᵀ V · s of each attention layer, [T, B, N, D], or what replaces it, such as Σ K ⊙ V; before its neuron."""
    attentions: dict[str, AttentionRecord] = field(default_factory=dict)
    """Of layers whose tokens look at each other by Q Kᵀ."""
    masks: dict[str, MaskRecord] = field(default_factory=dict)
    """Of layers that mask an operand instead."""
    _starts: dict[str, _Start] = field(default_factory=dict, repr=False)

    def firing_rates(self) -> dict[str, Tensor]:
        """Spikes per neuron after each step, [T], by layer."""
        return {name: spikes.float().flatten(1).mean(1) for name, spikes in self.spikes.items()}

    def spikes_of(self, layer: str) -> Tensor:
        return _look_up(self.spikes, layer, "neuron layer")

    def attention(self, layer: str) -> AttentionRecord:
        if layer in self.masks and layer not in self.attentions:
            raise FieldError(
                "layer", f"{layer} has a mask instead of Q Kᵀ; ask for mask({layer!r}), or for token_maps()."
            )
        return _look_up(self.attentions, layer, "attention layer")

    def mask(self, layer: str) -> MaskRecord:
        return _look_up(self.masks, layer, "attention layer with a mask")

    def token_maps(self) -> dict[str, Tensor]:
        """By attention layer, how much each token is looked at, or passes its mask, [T, B, h, N]; none negative."""
        layers = self.masks | self.attentions
        return {name: layers[name].token_map() for name in self.products if name in layers}

    def membrane(self, layer: str) -> Tensor:
        """H, the membrane before each spike, [T, B, …] in float32 or wider, computed again from the currents."""
        current = _look_up(self.currents, layer, "neuron layer")
        if layer not in self._starts:
            raise FieldError(
                layer, f"The neurons of {layer!r} have a forward of their own, so their membrane is unknown."
            )
        current = current.to(torch.promote_types(current.dtype, torch.float32))
        start = self._starts[layer]
        steps = merge_time(current) if start.one_sequence else current
        _, _, membrane = reference.forward(steps, start.voltage, start.gain, start.dynamics, keep_membrane=True)
        assert membrane is not None
        return membrane.view_as(current)


def _look_up(kept: Mapping[str, _Value], layer: str, kind: str) -> _Value:
    if layer not in kept:
        raise UnknownNameError(kind, layer, kept, "" if kept else "there is none, or nothing has run yet.")
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

    def watch_gating(name: str) -> Callable[..., None]:
        def hook(gating: Gating, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
            mask, masked = (split_heads(x.detach(), gating.num_heads) for x in (inputs[1], output))
            seen.masks[name.removesuffix(".gate")] = MaskRecord(gating.operand, mask, masked)

        return hook

    def watch_sequence(name: str) -> Callable[..., None]:
        def hook(_layer: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
            neuron, (time_steps, *_) = f"{name}.neuron", inputs[0].shape
            for kept in (seen.spikes, seen.currents):
                kept[neuron] = split_time(kept[neuron], time_steps)
            seen._starts[neuron] = seen._starts[neuron]._replace(one_sequence=True)

        return hook

    watching = (
        (SpikingNeuron, watch_neuron),
        (TokenMixing, watch_mixing),
        (Gating, watch_gating),
        (BatchSequenceLinear, watch_sequence),
    )
    with ExitStack() as stack:
        for kind, watch in watching:
            stack.enter_context(hooked(model, kind, watch))
        yield seen


def spikes_in(output: Tensor | tuple[Tensor, Tensor]) -> Tensor:
    """The spikes that a neuron returned, in a stream beside its voltage."""
    return output[0] if isinstance(output, tuple) else output


def has_maps(mixing: nn.Module) -> bool:
    """Whether a layer mixes tokens by Q Kᵀ, so that each takes from each."""
    return isinstance(mixing, TokenMixing) and mixing.variant.product in (linear_product, softmax_product)


def mapped_layers(model: nn.Module) -> dict[int, str]:
    """Attention layers that `Record.token_maps` shows, by the number of their block, counted from 1 through all stages.

    Other blocks, as of convolutions, are counted, too.
    """
    found = (name for name, module in model.named_modules() if has_maps(module) or isinstance(module, Gating))
    return by_block(dict.fromkeys(name.rpartition(".")[0] for name in found))


def by_block(layers: Iterable[str]) -> dict[int, str]:
    """Names such as blocks.2.attention by the number of the block, here 3; counted alone where that is not unique."""
    names = list(layers)
    numbers = [next((int(part) + 1 for part in name.split(".") if part.isdecimal()), 0) for name in names]
    distinct = 0 not in numbers and len(set(numbers)) == len(numbers)
    return dict(zip(numbers if distinct else range(1, len(names) + 1), names, strict=True))


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
