"""How authors' repositories name the parts of their networks, and what we call them: one table for each naming.

A name leads to a tensor ("block.0.attn.q_bn.bias") or to a neuron, which may have no tensor ("block.0.attn.q_lif").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

_BLOCK = re.compile(r"block\.(\d{1,9})\.(.+)")
_LEAVES = {"w": "gain_logit"}  # of a neuron with a learnable τ


def units(names: Mapping[str, str], ours: str) -> dict[str, str]:
    """Weight, norm and neuron of each unit; `ours` is what we call the weight, theirs is `conv` or `linear`."""
    parts = {"conv": ours, "linear": ours, "bn": "norm", "lif": "neuron"}
    return {f"{name}_{part}": f"{unit}.{own}" for name, unit in names.items() for part, own in parts.items()}


def _numbered(count: int) -> dict[str, str]:
    """A stem whose numbers follow the part: proj_conv, proj_conv1, …"""
    parts = {"conv": "conv", "bn": "norm", "lif": "neuron"}
    stages = [("" if stage == 0 else str(stage), f"stem.stages.{stage}") for stage in range(count)]
    return {f"patch_embed.proj_{part}{n}": f"{unit}.{own}" for n, unit in stages for part, own in parts.items()}


def _before_weights(names: Iterable[str]) -> dict[str, str]:
    """A stem whose neurons are named after the convolution that follows: the first of these names has none."""
    *stages, position = (f"patch_embed.{name}" for name in names)
    places = {name: f"stem.stages.{stage}" for stage, name in enumerate(stages)} | {position: "stem.position"}
    neurons = {f"{name}_lif": f"stem.stages.{stage}.neuron" for stage, name in enumerate((*stages[1:], position))}
    return {name: own for name, own in units(places, "conv").items() if not name.endswith("_lif")} | neurons


_POSITION = units({"patch_embed.rpe": "stem.position"}, "conv")
_ATTENTION = units(
    {
        "attn.q": "attention.query",
        "attn.k": "attention.key",
        "attn.v": "attention.value",
        "attn.proj": "attention.projection",
    },
    "linear",
)
_PRODUCT = {"attn.attn_lif": "attention.neuron"}
_MLP = units({"mlp.fc1": "mlp.hidden", "mlp.fc2": "mlp.output"}, "linear")
_PREACTIVATION = (
    _ATTENTION
    | _PRODUCT
    | {"attn.proj_lif": "attention.input_neuron"}  # Official: despite its name, in front of Q, K and V
    | units({"mlp.mlp1": "mlp.hidden", "mlp.mlp2": "mlp.output"}, "linear")
)


@dataclass(frozen=True)
class Naming:
    """How one repository names its networks."""

    title: str
    signs: tuple[str, ...]
    """Tensors that a checkpoint with these names has, all of them."""
    presets: tuple[str, ...]
    """The networks so named; what their code fixes, and weights do not determine, is in our presets of them."""
    stem: Mapping[str, str]
    block: Mapping[str, str]
    never_used: re.Pattern[str]
    """Tensors that the authors' networks carry and never use."""
    others: Mapping[str, str] = field(default_factory=dict)
    num_heads: int | None = None
    """Heads that the authors' code fixes, whatever its training arguments say."""

    def fitted(self, state: Mapping[str, Any]) -> Naming:
        """The naming of one checkpoint, where translating needs to know its sizes."""
        return self

    def sizes(self, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        """The fields of a config that weights under our names determine."""
        hidden, width = tensors["blocks.0.mlp.hidden.linear.weight"].shape
        return self.widths(tensors) | {
            "num_classes": len(tensors["head.weight"]),
            "in_channels": tensors["stem.stages.0.conv.weight"].shape[1],
            "mlp_ratio": hidden / width,
            "neuron": "plif" if "stem.stages.0.neuron.gain_logit" in tensors else "lif",
        }

    def widths(self, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        """Those of width and depth."""
        return {
            "embed_dim": tensors["blocks.0.mlp.hidden.linear.weight"].shape[1],
            "depth": 1 + max(int(match[1]) for key in tensors if (match := re.match(r"blocks\.(\d{1,9})\.", key))),
        }

    def translate(self, key: str) -> str:
        """Our name of a tensor or neuron: "block.0.attn.q_bn.bias" is "blocks.0.attention.query.norm.bias"."""
        if match := _BLOCK.fullmatch(key):
            own = look_up(match[2], self.block)
            return key if own is None else f"blocks.{match[1]}.{own}"
        return look_up(key, {**self.stem, **self.others}) or key


def look_up(key: str, table: Mapping[str, str]) -> str | None:
    """Of a module in the table, or of a tensor in such a module."""
    if key in table:
        return table[key]
    module, _, leaf = key.rpartition(".")
    return f"{table[module]}.{_LEAVES.get(leaf, leaf)}" if module in table else None


def with_sizes(names: str, *data_sets: str) -> tuple[str, ...]:
    return tuple(f"{names}_{data_set}" for data_set in data_sets)


_LAYER_NORMS = re.compile(r"block\.\d{1,9}\.norm[12]\.(weight|bias)")
_SPIKFORMER_UNUSED = re.compile(r"(block\.\d{1,9}\.norm[12]|norm)\.(weight|bias)|pos_embed")
_SPIKE_DRIVEN_UNUSED = re.compile(r"block\.\d{1,9}\.attn\.(talking_heads\.weight|attn_lif\.w)|patch_embed\.rpe_lif\.w")

NAMINGS = (
    Naming(
        "Spikformer, CIFAR",
        ("patch_embed.proj_conv.weight", "block.0.mlp.fc1_linear.weight"),
        ("spikformer_4_384_cifar10",),
        _numbered(4) | _POSITION,
        _ATTENTION | _PRODUCT | _MLP,
        _SPIKFORMER_UNUSED,
    ),
    Naming(
        "CML-Spikformer",
        ("patch_embed.block1_conv.weight", "block.0.mlp.fc1_linear.weight"),
        ("cml_spikformer_4_384_cifar10",),
        units({f"patch_embed.block{stage + 1}": f"stem.stages.{stage}" for stage in range(4)}, "conv") | _POSITION,
        _ATTENTION | _PRODUCT | _MLP,
        _LAYER_NORMS,
    ),
    Naming(
        "Spike-driven Transformer",
        ("block.0.attn.talking_heads.weight", "block.0.mlp.fc1_conv.weight"),
        with_sizes("spike_driven_transformer", "2_512_cifar10", "2_512_cifar100", "8_512_imagenet")
        + with_sizes("spike_driven_transformer", "2_256_cifar10dvs", "2_256_dvs128"),
        _numbered(4) | _POSITION | {"patch_embed.proj_lif3": "stem.position.neuron"},
        _ATTENTION
        | _MLP
        | {"attn.shortcut_lif": "attention.input_neuron", "attn.talking_heads_lif": "attention.neuron"},
        _SPIKE_DRIVEN_UNUSED,
        {"head_lif": "head_neuron"},
    ),
    Naming(
        "Spikformer, ImageNet and events",
        ("patch_embed.proj_conv.weight", "block.0.mlp.fc1_conv.weight"),
        ("spikformer_8_512_imagenet", "spikformer_2_256_cifar10dvs"),
        _numbered(4) | _POSITION,
        _ATTENTION | _PRODUCT | _MLP,
        _SPIKFORMER_UNUSED,
    ),
    Naming(
        "Spikingformer, CIFAR",
        ("patch_embed.block0_conv.weight", "block.0.mlp.mlp1_conv.weight"),
        with_sizes("spikingformer", "4_384_cifar10", "4_384_cifar100"),
        _before_weights(f"block{stage}" for stage in range(5)),
        _PREACTIVATION,
        _LAYER_NORMS,
    ),
    Naming(
        "Spikingformer",
        ("patch_embed.proj1_conv.weight", "block.0.mlp.mlp1_conv.weight"),
        with_sizes("cml_spikingformer", "4_384_cifar10", "4_384_cifar100", "8_512_imagenet")
        + with_sizes("cml_spikingformer", "2_256_cifar10dvs", "2_256_dvs128")
        + with_sizes("spikingformer", "8_512_imagenet", "2_256_cifar10dvs", "2_256_dvs128"),
        _before_weights(("proj", "proj1", "proj2", "proj3", "proj4")),
        _PREACTIVATION,
        _LAYER_NORMS,
    ),
)
"""In the order they are tried: a checkpoint has the first naming whose signs it has."""
