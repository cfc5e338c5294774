"""Networks of every architecture at the size of one, so that a comparison varies the architecture alone.

    for name, config in sized_like(get_preset("spikformer_small_cifar10").config).items():
        config.num_parameters

Image, classes, time steps, neurons, heads, MLP ratio and blocks are those of the given Spikformer; all have the same
number of positions in the last map, and the width whose parameters come nearest. The rest are each architecture's
defaults. An architecture takes part whose config has `COMPARED`; SEW's networks for event cameras do not: their head
reads a last map of fixed size.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from spikformer.config import CONVENTIONAL, NetworkConfig, TransformerConfig
from spikformer.errors import FieldError
from spikformer.models.registry import list_architectures

_WIDTH_UNIT = 8  # widths are its multiples, which vectors like


def sized_like(config: TransformerConfig) -> dict[str, NetworkConfig]:
    """A network of each architecture, by its name; of its own, the given one, whatever its `pool_after` was."""
    if config.neuron in CONVENTIONAL:
        raise FieldError("neuron", f"Architectures are compared as spiking networks, got neuron={config.neuron!r}.")
    return {
        f"{prefix}{architecture.name}": config.override(**fields)
        if type(config) is architecture.config_type
        else _nearest(architecture.config_type, fields, config)
        for architecture in list_architectures()
        for prefix, fields in architecture.config_type.COMPARED.items()
    }


def _nearest(kind: type[NetworkConfig], fields: Mapping[str, Any], like: TransformerConfig) -> NetworkConfig:
    """Of all widths, the network whose parameters come nearest; of two that are as near, the smaller."""
    best: NetworkConfig | None = None
    fewest = like.num_parameters  # by which `best` differs
    for width in count(_WIDTH_UNIT, _WIDTH_UNIT):
        try:
            made = kind(**kind.sizes_like(like, width) | dict(fields))
        except FieldError:  # a width that heads or stages do not divide
            if width > 8 * like.embed_dim:
                raise
            continue
        if made.num_parameters is None:
            raise FieldError("num_parameters", f"{kind.__name__} needs num_parameters to be compared.")
        distance = abs(made.num_parameters - like.num_parameters)
        if best is None or distance < fewest:
            best, fewest = made, distance
        if made.num_parameters > like.num_parameters:
            return best
    raise AssertionError("count() has no end")
