"""A network layer by layer, from the shapes it sees: multiply-accumulates (MACs), outputs and parameters.

Batch norms fold into the weights before them, and neurons, pools and residual sums multiply nothing, so three kinds of
layer are counted: convolutions, linear layers and the product of Q, K and V. Nothing is skipped in silence: a module of
another kind is an error, and so is any product that PyTorch's own counter sees and this one does not.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from spikformer.analysis.recorder import has_maps, spikes_in
from spikformer.errors import FieldError
from spikformer.layers.attention import Gating, TokenMixing, takes_keys_first
from spikformer.layers.sync_norm import SyncedBatchNorm
from spikformer.models import SpikingNetwork
from spikformer.models.inspection import unwrap
from spikformer.neurons import Activation, SpikingNeuron

Order = Literal["query_key_first", "key_value_first"]
ORDER_FORMULAS: dict[Order, str] = {"query_key_first": "(Q Kᵀ) V", "key_value_first": "Q (Kᵀ V)"}
Runtime = Literal["torch", "engine"]
"""What runs the network, and by which rule it orders the products of attention."""

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.SyncBatchNorm, SyncedBatchNorm)
_FREE = (*_NORMS, SpikingNeuron, Activation, Gating, nn.MaxPool2d, nn.Identity, nn.ModuleList)


@dataclass(frozen=True)
class LayerOperations:
    """A layer's MACs for one sample in one time step, as PyTorch computes it."""

    name: str
    kind: Literal["conv", "linear", "attention"]
    macs: int
    products: dict[Order, tuple[int, int]] = field(default_factory=dict)
    """Of attention: the MACs of its first and its second product, by the order they are taken in."""
    orders: dict[Runtime, Order] = field(default_factory=dict)
    """Of attention: the order that each runtime takes."""

    @property
    def twin_macs(self) -> int:
        """Of the same layer in the ANN twin, whose softmax needs Q Kᵀ."""
        return sum(self.products["query_key_first"]) if self.products else self.macs


def count_operations(model: SpikingNetwork, image_size: tuple[int, int] | None = None) -> list[LayerOperations]:
    """The layers of a model in the order they run. `image_size` is needed only where the config leaves it open."""
    size = image_size or model.config.image_size
    if size is None:
        raise FieldError(
            "image_size", "This model's config leaves image_size open, and operations depend on it; give one."
        )
    shapes_only = _without_data(model)
    counted: list[LayerOperations] = []
    for name, module in shapes_only.named_modules():
        _check_known(name, module)
        if isinstance(module, nn.Conv2d | nn.Linear | TokenMixing):
            module.register_forward_hook(_counting(name, counted))
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        shapes_only(torch.empty(1, model.config.in_channels, *size, device="meta", dtype=model.like.dtype))
    _check_complete(counted, counter.get_total_flops() // 2, model.config.time_steps)
    return counted


def _without_data(model: SpikingNetwork) -> SpikingNetwork:
    """A copy with shapes alone, and without the hooks of those who watch the model."""
    copy = deepcopy(model).to("meta").eval()
    for module in copy.modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
    return copy


def _counting(name: str, counted: list[LayerOperations]) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(module, nn.Conv2d):
            counted.append(LayerOperations(name, "conv", output[0].numel() * module.weight[0].numel()))
        elif isinstance(module, nn.Linear):
            counted.append(LayerOperations(name, "linear", output[0].numel() * module.in_features))
        elif has_maps(module):  # products of another variant must do without matrices, or the sums below differ
            counted.append(_count_attention(name, module, inputs[0]))

    return hook


def _count_attention(name: str, mixing: Any, query: Tensor) -> LayerOperations:
    num_tokens, embed_dim = query.shape[-2:]
    head_dim = embed_dim // mixing.num_heads
    products: dict[Order, tuple[int, int]] = {"query_key_first": (num_tokens**2 * embed_dim,) * 2}
    keys_first: dict[Runtime, bool] = {"torch": False, "engine": False}
    if not mixing.softmax:  # which needs Q Kᵀ
        products["key_value_first"] = (num_tokens * embed_dim * head_dim,) * 2
        # The engine's Kᵀ V runs by events, so that it pays off earlier: query_key_first of kernels/core/layout.hpp.
        keys_first = {"torch": takes_keys_first(num_tokens, head_dim), "engine": 2 * num_tokens >= head_dim}
    orders: dict[Runtime, Order] = {
        runtime: "key_value_first" if first else "query_key_first" for runtime, first in keys_first.items()
    }
    return LayerOperations(name, "attention", sum(products[orders["torch"]]), products, orders)


def _check_known(name: str, module: nn.Module) -> None:
    known = isinstance(module, (nn.Conv2d, nn.Linear, TokenMixing, *_FREE))
    holds_weights = any(True for _ in module.parameters(recurse=False))
    if not known and (holds_weights or not any(True for _ in module.children())):
        raise FieldError(
            name,
            f"Operations of {name}, a {type(module).__name__}, cannot be counted; add it to analysis/operations.py, "
            "so that no energy is left out.",
        )


def _check_complete(counted: list[LayerOperations], seen_by_torch: int, time_steps: int) -> None:
    first, *others = counted
    ours = first.macs + time_steps * sum(layer.macs for layer in others)
    if ours != seen_by_torch:
        raise FieldError(
            "model",
            f"PyTorch sees {seen_by_torch:,} multiply-accumulates in this model and its layers explain {ours:,}; add "
            "the difference to analysis/operations.py, so that no energy is left out.",
        )


@dataclass(frozen=True)
class LayerSummary:
    """One layer that computes something itself; what only holds others is left out."""

    name: str
    kind: str
    shape: tuple[int, ...]
    """Of what leaves it for one sample in one time step."""
    num_parameters: int
    macs: int
    """For one sample in one time step."""


@dataclass(frozen=True)
class Summary:
    """The layers of a network in the order they run; `print` shows a table."""

    title: str
    layers: tuple[LayerSummary, ...]

    @property
    def num_parameters(self) -> int:
        return sum(layer.num_parameters for layer in self.layers)

    @property
    def macs(self) -> int:
        """Of one sample in one time step."""
        return sum(layer.macs for layer in self.layers)

    def __str__(self) -> str:
        rows = [("layer", "kind", "output", "parameters", "MACs")]
        rows += [
            (layer.name, layer.kind, "×".join(map(str, layer.shape)), f"{layer.num_parameters:,}", f"{layer.macs:,}")
            for layer in self.layers
        ]
        rows.append((self.title, "", "", f"{self.num_parameters:,}", f"{self.macs:,}"))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = []
        for row in rows:
            left = "  ".join(word.ljust(width) for word, width in zip(row[:3], widths[:3], strict=True))
            lines.append("  ".join((left, row[3].rjust(widths[3]), row[4].rjust(widths[4]))))
        return "\n".join(lines)


def summary(model: nn.Module, image_size: tuple[int, int] | None = None) -> Summary:
    """What a network is made of. `image_size` is needed only where the config leaves it open."""
    network = unwrap(model, "summary")
    macs = {layer.name: layer.macs for layer in count_operations(network, image_size)}
    shapes_only = _without_data(network)
    found: dict[str, LayerSummary] = {}
    for name, module in shapes_only.named_modules():
        if not any(True for _ in module.children()):
            module.register_forward_hook(_describing(name, macs.get(name, 0), found))
    size = image_size or network.config.image_size
    frame = torch.empty(1, 1, network.config.in_channels, *size, device="meta", dtype=network.like.dtype)
    with torch.no_grad():
        shapes_only(frame)
    return Summary(network.config.title, tuple(found.values()))


def _describing(name: str, macs: int, found: dict[str, LayerSummary]) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor | tuple[Tensor, Tensor]) -> None:
        parameters = sum(parameter.numel() for parameter in module.parameters())
        samples = spikes_in(output)
        over_time = samples.shape[:2] == (1, 1)  # neurons see [T, B, …], other layers [T·B, …]
        shape = tuple(samples.shape[2:] if over_time else samples.shape[1:])
        found[name] = LayerSummary(name, type(module).__name__, shape, parameters, macs)

    return hook
