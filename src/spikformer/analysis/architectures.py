"""Networks of every architecture at the size of one, so that a comparison varies the architecture alone.

    for name, config in sized_like(get_preset("spikformer_small_cifar10").config).items():
        config.num_parameters

Image, classes, time steps, neurons, heads, MLP ratio and blocks are those of the given Spikformer; all have the same
number of positions in the last map, and the width whose parameters come nearest. The rest are each architecture's
defaults. SEW's networks for event cameras are not among them: their head reads a last map of fixed size.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from spikformer.config import (
    HierarchicalConfig,
    MaxFormerConfig,
    MaxResNetConfig,
    ModelConfig,
    MSQKFormerConfig,
    QKFormerConfig,
    ResidualConfig,
    SEWResNetConfig,
    SpikeDrivenConfig,
    SpikingformerConfig,
    TransformerConfig,
)
from spikformer.config.network import CONVENTIONAL
from spikformer.errors import FieldError

Sized = TransformerConfig | HierarchicalConfig | ResidualConfig
"""Configs that know their number of parameters."""

_SHARED = (
    *("image_size", "in_channels", "num_classes", "time_steps"),
    *("neuron", "tau", "v_threshold", "v_reset", "surrogate", "surrogate_alpha", "detach_reset"),
)
_WIDTH_UNIT = 8  # widths are its multiples, which vectors like
_BLOCKS = 2  # of a stage of a residual network, as in ResNet-18
_FULL_STEM_HALVINGS = 2  # beyond, networks in stages start at a quarter of the resolution, as they do on ImageNet


def sized_like(config: ModelConfig) -> dict[str, Sized]:
    """A network of each architecture, by its name; the given one is "spikformer", whatever its `pool_after` was."""
    if config.neuron in CONVENTIONAL:
        raise FieldError("neuron", f"Architectures are compared as spiking networks, got neuron={config.neuron!r}.")
    shared = {name: getattr(config, name) for name in _SHARED}
    same = {"depth": config.depth, "pool_stages": config.pool_stages}
    attending = {"num_heads": config.num_heads, "mlp_ratio": config.mlp_ratio}
    stages = _stages(config)
    kernels = {"mixer_kernels": _mixer_kernels(len(stages["depths"]) - 1, full=stages["stem"] == "full")}
    makers: dict[str, Callable[[int], Sized]] = {
        "spikingformer": _widened(SpikingformerConfig, shared | same | attending),
        "cml_spikingformer": _widened(SpikingformerConfig, shared | same | attending | {"pool_after": "norm"}),
        "spike_driven_transformer": _widened(SpikeDrivenConfig, shared | same | attending),
        "qkformer": _widened(QKFormerConfig, shared | stages | attending),
        "ms_qkformer": _widened(MSQKFormerConfig, shared | stages | attending),
        "maxformer": _widened(MaxFormerConfig, shared | stages | attending | kernels),
        "max_resnet": _max_resnet(shared, config.patch_size),
        "sew_resnet": _sew_resnet(shared, config.patch_size),
    }
    sized: dict[str, Sized] = {
        "spikformer": config.override(pool_after="neuron"),
        "cml_spikformer": config.override(pool_after="norm"),
    }
    return sized | {name: _nearest(make, config) for name, make in makers.items()}


def _nearest(make: Callable[[int], Sized], like: ModelConfig) -> Sized:
    """Of all widths, the network whose parameters come nearest; of two that are as near, the smaller."""
    best: Sized | None = None
    for width in count(_WIDTH_UNIT, _WIDTH_UNIT):
        try:
            made = make(width)
        except FieldError:  # a width that heads or stages do not divide
            if width > 8 * like.embed_dim:
                raise
            continue
        if best is None or _distance(made, like) < _distance(best, like):
            best = made
        if made.num_parameters > like.num_parameters:
            return best
    raise AssertionError("count() has no end")


def _distance(made: Sized, like: Sized) -> int:
    return abs(made.num_parameters - like.num_parameters)


def _widened(kind: type[TransformerConfig | HierarchicalConfig], fields: dict[str, Any]) -> Callable[[int], Sized]:
    return lambda width: kind(**fields, embed_dim=width)


def _halvings(patch_size: int) -> int:
    return patch_size.bit_length() - 1


def _stages(config: ModelConfig) -> dict[str, Any]:
    """One block in each stage, and all of the Spikformer's in the last."""
    halvings = _halvings(config.patch_size)
    full = halvings <= _FULL_STEM_HALVINGS
    early = halvings if full else halvings - 2
    return {"stem": "full" if full else "quarter", "depths": (*[1] * early, config.depth)}


def _mixer_kernels(count: int, *, full: bool) -> tuple[int, ...]:
    """Max-Former's of CIFAR, whose first stage mixes nothing, or of ImageNet; the last of them for fewer stages."""
    first, last = (0, 3) if full else (7, 5)
    return (*[first] * (count - 1), last)[-count:] if count else ()


def _max_resnet(shared: dict[str, Any], patch_size: int) -> Callable[[int], Sized]:
    num_stages = _halvings(patch_size) + 1

    def make(width: int) -> MaxResNetConfig:
        widths = tuple(width << stage for stage in range(num_stages))
        return MaxResNetConfig(**shared, widths=widths, depths=(_BLOCKS,) * num_stages, stem_width=width // 2)

    return make


def _sew_resnet(shared: dict[str, Any], patch_size: int) -> Callable[[int], Sized]:
    halvings = _halvings(patch_size)
    full = halvings <= _FULL_STEM_HALVINGS
    num_stages = halvings + 1 if full else halvings - 1
    stem: dict[str, Any] = {"stem_kernel_size": 3, "stem_stride": 1, "stem_pool": False} if full else {}

    def make(width: int) -> SEWResNetConfig:
        widths = tuple(width << stage for stage in range(num_stages))
        return SEWResNetConfig(**shared, **stem, widths=widths, depths=(_BLOCKS,) * num_stages)

    return make
