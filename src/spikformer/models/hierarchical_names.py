"""How authors' repositories name the parts of networks in stages, and what we call them: one table for each naming."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from torch import Tensor

from spikformer.models.official_names import Naming, look_up, units, with_sizes

_BLOCK = re.compile(r"stage([1-9])\.(\d{1,9})\.(.+)")
_EMBEDDING = re.compile(r"patch_embed([1-9])\.(.+)")
_NOTHING = re.compile(r"(?!)")  # these networks carry no tensor that they never use


@dataclass(frozen=True)
class HierarchicalNaming(Naming):
    """Stages count from 1, their blocks from 0: "stage2.0.…"; `stem` is of "patch_embed1", without that prefix."""

    never_used: re.Pattern[str] = _NOTHING
    downsampling: Mapping[str, str] = field(default_factory=dict)
    """Parts of "patch_embed2" and "patch_embed3"."""
    has_mixers: bool = False
    """Whether stages but the last may have depthwise convolutions."""
    depths: tuple[int, ...] = ()
    """Blocks of each stage, of a checkpoint's: ours are counted through all stages."""

    def fitted(self, state: Mapping[str, Any]) -> Self:
        blocks = [(int(match[1]), int(match[2])) for key in state if (match := _BLOCK.fullmatch(key))]
        stages = range(1, 1 + max((stage for stage, _ in blocks), default=0))
        depths = (max((block + 1 for stage, block in blocks if stage == wanted), default=0) for wanted in stages)
        return replace(self, depths=tuple(depths))

    def widths(self, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        sizes = {"embed_dim": tensors["head.weight"].shape[1], "depths": self.depths}
        if self.has_mixers:
            firsts = (sum(self.depths[:stage]) for stage in range(len(self.depths) - 1))
            mixers = (tensors.get(f"blocks.{first}.conv.conv.weight") for first in firsts)
            sizes["mixer_kernels"] = tuple(0 if mixer is None else mixer.shape[-1] for mixer in mixers)
        return sizes

    def translate(self, key: str) -> str:
        if match := _BLOCK.fullmatch(key):
            own = look_up(match[3], self.block)
            return key if own is None else f"blocks.{sum(self.depths[: int(match[1]) - 1]) + int(match[2])}.{own}"
        if match := _EMBEDDING.fullmatch(key):
            stage = int(match[1]) - 1
            own = look_up(match[2], self.downsampling if stage else self.stem)
            place = f"downsampling.{stage - 1}" if stage else "stem"
            return key if own is None else f"{place}.{own}"
        return look_up(key, self.others) or key


# Post-activation: each unit has convolution, norm and neuron.


def _attention(name: str) -> dict[str, str]:
    parts = {"q": "query", "k": "key", "v": "value", "proj": "projection"}
    named = units({f"{name}.{part}": f"attention.{own}" for part, own in parts.items()}, "linear")
    return named | {f"{name}.attn_lif": "attention.neuron"}


def _mlp(name: str) -> dict[str, str]:
    return units({f"mlp.{name}1": "mlp.hidden", f"mlp.{name}2": "mlp.output"}, "linear")


def _embedding(*names: str, stages: int = 0) -> dict[str, str]:
    """Convolutions in their order, the first of them before the fork; the shortcut is last."""
    *convolutions, shortcut = names
    places = [f"stages.{index}" for index in range(stages)]
    places += [f"branch.{index}" for index in range(len(convolutions) - stages)]
    return units(dict(zip(convolutions, places, strict=True)) | {shortcut: "shortcut"}, "conv")


_QK_DOWN = _embedding("proj3", "proj4", "proj_res")

# Membranes: a neuron is named after the convolution that follows it; the fork's has a place of its own.


_CONV_AND_NORM = {"conv": "conv", "bn": "norm"}


def _embed(**places: str) -> dict[str, str]:
    parts = {**_CONV_AND_NORM, "lif": "neuron"}
    return {f"{name}.embed_{part}": f"{place}.{own}" for name, place in places.items() for part, own in parts.items()}


def _parts(name: str, place: str) -> dict[str, str]:
    return {f"{name}_{part}": f"{place}.{own}" for part, own in _CONV_AND_NORM.items()}


_CIFAR_STEM = (
    _parts("proj", "stages.0")
    | _embed(embed1="branch.0", embed2="shortcut")
    | {"embed1.embed_lif": "neuron", "embed2.embed_lif": "neuron"}  # Official: two neurons that read the same
)
_MAX_DOWN = _embed(max_embed1="branch.0", embed1="branch.1", max_embed2="shortcut") | {"max_embed1.embed_lif": "neuron"}
_MEMBRANE_BLOCK = _attention("attn") | _mlp("fc") | {"attn.x_lif": "attention.input_neuron"}
_MAX_BLOCK = _MEMBRANE_BLOCK | {
    f"mixer.{name}{part}": f"conv.{own}"
    for name in ("conv", "conv5")
    for part, own in {"": "conv", "_bn": "norm", "_neuron": "neuron"}.items()
}
_MS_BLOCK = _MEMBRANE_BLOCK | {"attn.proj_lif": "attention.input_neuron"}
_HEAD = {"head_lif": "head_neuron"}

NAMINGS = (
    HierarchicalNaming(
        "QKFormer, CIFAR",
        ("patch_embed1.proj1_conv.weight", "stage3.0.ssa.q_conv.weight"),
        with_sizes("qkformer_4_384", "cifar10", "cifar100"),
        _embedding("proj", "proj1", "proj_res", stages=1),
        _attention("tssa") | _attention("ssa") | _mlp("mlp"),
        downsampling=_QK_DOWN,
        num_heads=8,
    ),
    HierarchicalNaming(
        "QKFormer, ImageNet",
        ("patch_embed1.proj2_conv.weight", "stage1.0.tssa.q_conv.weight", "stage3.0.attn.q_conv.weight"),
        with_sizes("qkformer", "10_384_imagenet", "10_512_imagenet", "10_768_imagenet"),
        _embedding("proj", "proj1", "proj2", "proj_res", stages=1),
        _attention("tssa") | _attention("attn") | _mlp("fc"),
        downsampling=_QK_DOWN,
    ),
    HierarchicalNaming(
        "QKFormer, events",
        ("patch_embed1.proj3_conv.weight", "stage2.0.ssa.q_conv.weight"),
        with_sizes("qkformer_2_256", "cifar10dvs", "dvs128"),
        _embedding("proj", "proj1", "proj2", "proj3", "proj_res", stages=2),
        _attention("tssa") | _attention("ssa") | _mlp("mlp"),
        downsampling=_embedding("proj", "proj4", "proj_res"),
        num_heads=16,
    ),
    HierarchicalNaming(
        "Max-Former, CIFAR",
        (
            "patch_embed1.proj_conv.weight",
            "patch_embed1.embed2.embed_conv.weight",
            "patch_embed2.max_embed2.embed_conv.weight",
        ),
        with_sizes("maxformer_4_384", "cifar10", "cifar100"),
        _CIFAR_STEM,
        _MAX_BLOCK,
        others=_HEAD,
        downsampling=_MAX_DOWN,
        has_mixers=True,
        num_heads=8,
    ),
    HierarchicalNaming(
        "Max-Former, ImageNet",
        ("patch_embed1.embed4.embed_conv.weight", "patch_embed2.max_embed2.embed_conv.weight"),
        with_sizes("maxformer", "10_384_imagenet", "10_512_imagenet", "10_768_imagenet"),
        _embed(embed1="stages.0", embed2="branch.0", embed3="branch.1", embed4="shortcut")
        | {"embed2.embed_lif": "neuron"},
        _MAX_BLOCK,
        others=_HEAD,
        downsampling=_MAX_DOWN,
        has_mixers=True,
    ),
    HierarchicalNaming(
        "Max-Former, events",
        ("patch_embed1.max_embed3.embed_conv.weight", "patch_embed2.max_embed2.embed_conv.weight"),
        with_sizes("maxformer_2_256", "cifar10dvs", "dvs128"),
        _parts("proj", "stages.0")
        | _embed(max_embed1="stages.1", max_embed2="branch.0", max_embed3="branch.1", embed1="shortcut")
        | {"max_embed2.embed_lif": "neuron"},
        _MAX_BLOCK,
        others=_HEAD,
        downsampling=_MAX_DOWN,
        has_mixers=True,
        num_heads=16,
    ),
    HierarchicalNaming(
        "MS-QKFormer, CIFAR",
        ("patch_embed1.embed2.embed_conv.weight", "patch_embed2.embed2.embed_conv.weight"),
        with_sizes("ms_qkformer_4_384", "cifar10", "cifar100"),
        _CIFAR_STEM,
        _MS_BLOCK,
        others=_HEAD,
        downsampling=_embed(embed1="branch.0", max_embed1="branch.1", embed2="shortcut")
        | {"embed1.embed_lif": "neuron"},
        num_heads=8,
    ),
    HierarchicalNaming(
        "MS-QKFormer, ImageNet",
        ("patch_embed1.rpe_conv.weight", "patch_embed2.proj_res_conv.weight"),
        with_sizes("ms_qkformer", "10_384_imagenet", "10_512_imagenet", "10_768_imagenet"),
        _parts("proj", "stages.0")
        | {f"proj_{part}{n}": f"branch.{n - 1}.{own}" for n in (1, 2) for part, own in _CONV_AND_NORM.items()}
        | _parts("rpe", "shortcut")
        | {"proj_lif1": "neuron", "proj_lif2": "branch.1.neuron"},
        _MS_BLOCK,
        others=_HEAD,
        downsampling=_parts("proj3", "branch.0")
        | _parts("proj4", "branch.1")
        | _parts("proj_res", "shortcut")
        | {"init_lif": "neuron", "proj3_lif": "branch.1.neuron"},
    ),
)
"""None has all signs of another, nor of the namings of `official_names`."""
