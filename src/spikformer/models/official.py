"""Weights of the authors' public code, in any of its three variants, as one of our models.

The variant and the sizes follow from the keys and shapes; the number of heads does not, so it is asked for. What the
authors' network carries but never uses (layer norms, a position embedding) is dropped and named.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spikformer.config import ModelConfig
from spikformer.io import check_is_file
from spikformer.messages import printable
from spikformer.models.base import SpikingNetwork
from spikformer.models.checkpoint import read_checkpoint, weights_in
from spikformer.models.files import assemble, read_safetensors
from spikformer.presets import get_preset

logger = logging.getLogger(__name__)

_PATCH_EMBED = {"proj": "stem.stages.{}", "rpe": "stem.position"}
_BLOCK = {
    "attn.q": "attention.query",
    "attn.k": "attention.key",
    "attn.v": "attention.value",
    "attn.attn": "attention",
    "attn.proj": "attention.projection",
    "mlp.fc1": "mlp.hidden",
    "mlp.fc2": "mlp.output",
}
_PART = {"linear": "linear", "conv": "linear", "bn": "norm", "lif": "neuron"}
_NEVER_USED = re.compile(r"(block\.\d{1,9}\.norm[12]|norm)\.(weight|bias)|pos_embed")
_LONGEST_NAME = 200  # of a tensor


# What each of the authors' three model files fixes, and no weight tells, is in our preset of it.
_PRESETS = {
    "cifar": "spikformer_4_384_cifar10",
    "imagenet": "spikformer_8_512_imagenet",
    "dvs": "spikformer_2_256_cifar10dvs",
}


def from_official(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    num_heads: int,
    time_steps: int | None = None,
    image_size: int | tuple[int, int] | None = None,
) -> SpikingNetwork:
    """A model in eval mode from a file (.pth, .pth.tar, .safetensors) or a state dict, in the dtype it has there.

    The image size is taken from the training arguments or the position embedding where the checkpoint has them;
    otherwise it stays open, and the model takes any size that its pooling divides.

    A .pth file is read by `checkpoint`, in at most four times its size of memory; nothing in it is executed.
    """
    name = "The state dict" if isinstance(source, Mapping) else str(source)
    checkpoint = source if isinstance(source, Mapping) else _read(Path(source))
    arguments = vars(checkpoint["args"]) if isinstance(checkpoint.get("args"), argparse.Namespace) else {}
    arguments = {key: value for key, value in arguments.items() if type(value) is int}
    state = _state_dict(checkpoint, name)
    if arguments.get("num_heads", num_heads) != num_heads:
        raise ValueError(f"{name} was trained with num_heads={arguments['num_heads']}, got num_heads={num_heads}.")

    preset = get_preset(_PRESETS[detect_variant(state, name)]).config
    never_used = {key for key in state if _NEVER_USED.fullmatch(key)}
    if never_used:
        logger.warning(
            "Dropped %d tensors that the authors' network never uses: %s", len(never_used), _summary(never_used)
        )
    tensors = {translate(key): _as_ours(key, tensor) for key, tensor in state.items() if key not in never_used}
    trained_steps = arguments.get("time_step", arguments.get("T", preset.time_steps))
    trained_size = arguments.get("img_size", _size_by_position(state, preset, name))
    sizes = _with_sizes(preset, tensors, name)
    if num_heads < 1 or sizes.embed_dim % num_heads:
        raise ValueError(
            f"{name} has width {sizes.embed_dim}, which cannot be divided by num_heads={num_heads}; "
            "give the number of heads it was trained with."
        )
    config = sizes.override(
        num_heads=num_heads,
        time_steps=trained_steps if time_steps is None else time_steps,
        image_size=trained_size if image_size is None else image_size,
    )
    return assemble(config, tensors, name)


def translate(key: str) -> str:
    """Our name of an official tensor or neuron: "block.0.attn.q_bn.bias" is "blocks.0.attention.query.norm.bias"."""
    if match := re.fullmatch(r"patch_embed\.(proj|rpe)_(conv|bn|lif)(\d*)(\..+)?", key):
        layer, part, stage, rest = match.groups()
        part = "conv" if part == "conv" else _PART[part]
        return f"{_PATCH_EMBED[layer].format(stage or 0)}.{part}{rest or ''}"
    if match := re.fullmatch(r"block\.(\d{1,9})\.((?:attn|mlp)\.[a-z0-9]+)_(linear|conv|bn|lif)(\..+)?", key):
        block, layer, part, rest = match.groups()
        if layer in _BLOCK:
            return f"blocks.{block}.{_BLOCK[layer]}.{_PART[part]}{rest or ''}"
    return key


def detect_variant(state: Mapping[str, Tensor], name: str) -> str:
    """Cifar has linear layers; imagenet and dvs have 1×1 convolutions, two-dimensional and one-dimensional ones."""
    if "block.0.mlp.fc1_linear.weight" in state:
        return "cifar"
    if "block.0.mlp.fc1_conv.weight" in state:
        return "imagenet" if state["block.0.mlp.fc1_conv.weight"].ndim == 4 else "dvs"
    raise ValueError(f"{name} is not a checkpoint of the authors' code: it has no block.0.mlp.fc1_linear or fc1_conv.")


def _as_ours(key: str, tensor: Tensor) -> Tensor:
    """A copy, in the shape and type that our network has; one that cannot be brought there is reported later."""
    if translate(key).endswith(".linear.weight") and tensor.ndim > 2 and tensor.shape[2:].numel() == 1:
        tensor = tensor.reshape(tensor.shape[:2])  # 1×1 kernels
    if key.endswith(".num_batches_tracked") and tensor.ndim == 0:
        tensor = tensor.long()  # a cast of the whole file may have made counters float
    return tensor.clone()


def _with_sizes(preset: ModelConfig, tensors: Mapping[str, Tensor], name: str) -> ModelConfig:
    try:
        hidden, embed_dim = tensors["blocks.0.mlp.hidden.linear.weight"].shape
        num_classes = len(tensors["head.weight"])
        in_channels = tensors["stem.stages.0.conv.weight"].shape[1]
        mlp_ratio = hidden / embed_dim
    except (KeyError, IndexError, ValueError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"{name} lacks what tells its sizes ({error}).") from None
    try:
        return preset.override(
            image_size=None,
            in_channels=in_channels,
            num_classes=num_classes,
            embed_dim=embed_dim,
            depth=1 + max(int(match[1]) for key in tensors if (match := re.match(r"blocks\.(\d{1,9})\.", key))),
            num_heads=1,
            mlp_ratio=mlp_ratio,
            qkv_bias="blocks.0.attention.query.linear.bias" in tensors,
        )
    except ValueError as error:
        raise ValueError(f"{name} has sizes that no network can have: {error}") from None


def _size_by_position(state: Mapping[str, Tensor], preset: ModelConfig, name: str) -> int | None:
    """Of a square picture, by its number of tokens."""
    if "pos_embed" not in state:
        return None
    shape = state["pos_embed"].shape
    if len(shape) != 3:
        raise ValueError(f"{name}: pos_embed should be [1, N, D], is {list(shape)}.")
    side = math.isqrt(shape[1])
    return side * preset.patch_size if side * side == shape[1] else None


def _state_dict(checkpoint: Mapping[str, Any], name: str) -> dict[str, Tensor]:
    state = weights_in(checkpoint)
    if not isinstance(state, Mapping) or not state or not all(isinstance(x, Tensor) for x in state.values()):
        raise ValueError(f"{name} holds no weights: expected tensors by name, or an entry state_dict or model of them.")
    for key, tensor in state.items():
        if len(str(key)) > _LONGEST_NAME or not str(key).isprintable():
            raise ValueError(f"{name} holds a tensor called {printable(key)}; it is damaged or not a checkpoint.")
        if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
            raise ValueError(f"{name}: {key} has no plain values; convert it with .to_dense() or .dequantize().")
        if tensor.nbytes > tensor.untyped_storage().nbytes():
            raise ValueError(f"{name}: {key} is expanded to {list(tensor.shape)}; make it .contiguous().")
    return {str(key).removeprefix("module."): tensor for key, tensor in state.items()}


def _read(path: Path) -> Mapping[str, Any]:
    if path.suffix == ".safetensors":
        check_is_file(path)
        return read_safetensors(path)[1]
    return read_checkpoint(path)


def _summary(names: set[str]) -> str:
    kinds = sorted(
        {re.sub(r"block\.\d+", "block.*", name).removesuffix(".weight").removesuffix(".bias") for name in names}
    )
    return ", ".join(kinds)
