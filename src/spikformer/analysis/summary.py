"""A network layer by layer: what leaves each, its parameters and its multiply-accumulates."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spikformer.analysis.operations import count_operations
from spikformer.analysis.recorder import spikes_in
from spikformer.models.inspection import unwrap


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
    shapes_only = deepcopy(network).to("meta").eval()
    found: dict[str, LayerSummary] = {}
    for name, module in shapes_only.named_modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
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
