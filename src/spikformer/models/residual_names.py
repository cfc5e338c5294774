"""How authors' repositories name the parts of residual networks, and which of their sizes weights determine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any

from torch import Tensor

_NUMBERS = {"#": r"(\d{1,4})", "@": r"([1-9]\d{0,3})"}
_LEAVES = {".w": ".gain_logit"}  # of a neuron with a learnable τ
_NOTHING = re.compile(r"(?!)")

_SEW_RESNET = {
    "conv1": "stem.conv",
    "bn1": "stem.norm",
    "sn1": "stem.neuron",
    "layer@.#.conv@.0": "stages.@.#.layers.@.conv",
    "layer@.#.conv@.1": "stages.@.#.layers.@.norm",
    "layer@.#.sn@": "stages.@.#.layers.@.neuron",
    "layer@.#.downsample.0.0": "stages.@.#.shortcut.conv",
    "layer@.#.downsample.0.1": "stages.@.#.shortcut.norm",
    "layer@.#.downsample.1": "stages.@.#.shortcut.neuron",
    "fc": "head",
}
_SEW_EVENT_NET = {
    "conv.#.0.0": "layers.#.conv",
    "conv.#.0.1": "layers.#.norm",
    "conv.#.1": "layers.#.neuron",
    "conv.#.conv.#.0.0": "layers.#.layers.#.conv",
    "conv.#.conv.#.0.1": "layers.#.layers.#.norm",
    "conv.#.conv.#.1": "layers.#.layers.#.neuron",
    "out": "head",
}
_MAX_RESNET = {
    "conv1": "stem.conv",
    "bn1": "stem.norm",
    "layer@.#.conv@": "stages.@.#.layers.@.conv",
    "layer@.#.bn@": "stages.@.#.layers.@.norm",
    "layer@.#.spike@": "stages.@.#.layers.@.neuron",
    "layer@.#.downsample.1": "stages.@.#.shortcut.conv",
    "layer@.#.downsample.2": "stages.@.#.shortcut.norm",
    "spike": "output_neuron",
    "fc1": "head",
}


def _pattern(name: str) -> re.Pattern[str]:
    """Of a module's name at the front of a tensor's."""
    parts = (_NUMBERS.get(part, re.escape(part)) for part in re.split(r"([#@])", name))
    return re.compile("".join(parts) + r"(?=\.[a-z]|$)")


def _fill(ours: str, numbers: tuple[str, ...]) -> str:
    """Our name with the numbers of theirs: # is counted from 0 in both, @ from 1 in theirs."""
    left = iter(numbers)
    return re.sub("[#@]", lambda sign: str(int(next(left)) - (sign[0] == "@")), ours)


@dataclass(frozen=True)
class ResidualNaming:
    """How one repository names its residual networks, without the `module.` that wrappers put into names."""

    title: str
    signs: tuple[str, ...]
    """Tensors that a checkpoint with these names has, all of them."""
    presets: tuple[str, ...]
    """The networks so named; what their code fixes, and weights do not determine, is in our presets of them."""
    names: Mapping[str, str]
    sizes: Callable[[Mapping[str, Tensor]], dict[str, Any]]
    """The fields of a config that weights under our names determine."""
    never_used: re.Pattern[str] = _NOTHING

    @cached_property
    def _rules(self) -> list[tuple[re.Pattern[str], str]]:
        return [(_pattern(theirs), ours) for theirs, ours in self.names.items()]

    def translate(self, key: str) -> str:
        """Our name of a tensor or neuron: "layer2.0.conv1.0.weight" is "stages.1.0.layers.0.conv.weight"."""
        key = without_wrappers(key)
        for pattern, ours in self._rules:
            if match := pattern.match(key):
                leaf = key[match.end() :]
                return _fill(ours, match.groups()) + _LEAVES.get(leaf, leaf)
        return key


def without_wrappers(key: str) -> str:
    """A tensor's name without the `module.` of DataParallel in front, and of early SpikingJelly's containers inside."""
    return re.sub(r"\.module(?=\.\d)", "", key.removeprefix("module."))


def _stage_sizes(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Of a network in stages of blocks."""
    found = (re.match(r"stages\.(\d+)\.(\d+)\.", name) for name in tensors)
    blocks = {(int(match[1]), int(match[2])) for match in found if match}
    num_stages = 1 + max(stage for stage, _ in blocks)
    return {
        "num_classes": len(tensors["head.weight"]),
        "in_channels": tensors["stem.conv.weight"].shape[1],
        "widths": tuple(len(tensors[f"stages.{stage}.0.layers.0.conv.weight"]) for stage in range(num_stages)),
        "depths": tuple(1 + max(block for own, block in blocks if own == stage) for stage in range(num_stages)),
        "image_size": None,
    }


def _sew_resnet_sizes(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    bottleneck = "stages.0.0.layers.2.conv.weight" in tensors
    return _stage_sizes(tensors) | {
        "block": "bottleneck" if bottleneck else "basic",
        "stem_kernel_size": tensors["stem.conv.weight"].shape[2],
    }


def _max_resnet_sizes(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return _stage_sizes(tensors) | {"stem_width": len(tensors["stem.conv.weight"])}


def _sew_event_net_sizes(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    found = (re.fullmatch(r"layers\.(\d+)\.layers\.0\.conv\.weight", name) for name in tensors)
    blocks = sorted((int(match[1]), match[0]) for match in found if match)
    widths = tuple(len(tensors[name]) for _, name in blocks)
    num_classes, num_features = tensors["head.weight"].shape
    side = isqrt(num_features // widths[-1])
    if side * side * widths[-1] != num_features:
        raise ValueError(f"the head's {num_features} inputs are no square map of {widths[-1]} channels")
    return {
        "num_classes": num_classes,
        "in_channels": tensors["layers.0.conv.weight"].shape[1],
        "widths": widths,
        "image_size": side * 2 ** len(widths),
    }


RESIDUAL_NAMINGS = (
    ResidualNaming(
        "SEW-ResNet",
        ("layer1.0.conv1.0.weight", "fc.weight"),
        tuple(f"sew_resnet_{layers}_imagenet" for layers in (18, 34, 50, 101, 152)),
        _SEW_RESNET,
        _sew_resnet_sizes,
    ),
    ResidualNaming(
        "SEW, event cameras",
        ("conv.0.0.0.weight", "conv.1.conv.0.0.0.weight", "out.weight"),
        ("sew_wide_7b_net_cifar10dvs", "sew_7b_net_dvs128"),
        _SEW_EVENT_NET,
        _sew_event_net_sizes,
    ),
    ResidualNaming(
        "Max-ResNet",
        ("layer1.0.conv1.weight", "layer1.0.bn2.weight", "fc1.weight"),
        ("max_resnet_18_cifar10", "max_resnet_18_cifar100"),
        _MAX_RESNET,
        _max_resnet_sizes,
    ),
)
