"""Weights of the authors' public code, in any of its three variants, as one of our models.

The variant and the sizes follow from the keys and shapes; the number of heads does not, so it is asked for. What the
authors' network carries but never uses (layer norms, a position embedding) is dropped and named.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spikformer.config import ModelConfig
from spikformer.disk import check_is_file
from spikformer.models.files import assemble, read_safetensors
from spikformer.models.spikformer import Spikformer
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
_NEVER_USED = re.compile(r"(block\.\d+\.norm[12]|norm)\.(weight|bias)|pos_embed")


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
) -> Spikformer:
    """A model in eval mode from a file (.pth, .pth.tar, .safetensors) or a state dict, in the dtype it has there.

    The image size is taken from the training arguments or the position embedding where the checkpoint has them;
    otherwise it stays open, and the model takes any size that its pooling divides.
    """
    name = "The state dict" if isinstance(source, Mapping) else str(source)
    checkpoint = source if isinstance(source, Mapping) else _read(Path(source))
    arguments = vars(checkpoint["args"]) if isinstance(checkpoint.get("args"), argparse.Namespace) else {}
    state = _state_dict(checkpoint, name)
    if arguments.get("num_heads", num_heads) != num_heads:
        raise ValueError(f"{name} was trained with num_heads={arguments['num_heads']}, got num_heads={num_heads}.")

    preset = get_preset(_PRESETS[detect_variant(state, name)]).config
    never_used = {key for key in state if _NEVER_USED.fullmatch(key)}
    if never_used:
        logger.warning(
            "Dropped %d tensors that the authors' network never uses: %s", len(never_used), _summary(never_used)
        )
    tensors = {translate(key): tensor.clone() for key, tensor in state.items() if key not in never_used}
    for key, tensor in tensors.items():
        if key.endswith(".linear.weight"):
            tensors[key] = tensor.flatten(1)  # 1×1 kernels
        elif key.endswith(".num_batches_tracked"):
            tensors[key] = tensor.long()  # a cast of the whole file may have made counters float
    trained_steps = arguments.get("time_step", arguments.get("T", preset.time_steps))
    trained_size = arguments.get("img_size", _size_by_position(state, preset))
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
    if match := re.fullmatch(r"block\.(\d+)\.((?:attn|mlp)\.[a-z0-9]+)_(linear|conv|bn|lif)(\..+)?", key):
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


def _with_sizes(preset: ModelConfig, tensors: Mapping[str, Tensor], name: str) -> ModelConfig:
    try:
        hidden, embed_dim = tensors["blocks.0.mlp.hidden.linear.weight"].shape
        num_classes = len(tensors["head.weight"])
        in_channels = tensors["stem.stages.0.conv.weight"].shape[1]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise ValueError(f"{name} lacks what tells its sizes ({error}).") from None
    return preset.override(
        image_size=None,
        in_channels=in_channels,
        num_classes=num_classes,
        embed_dim=embed_dim,
        depth=1 + max(int(match[1]) for key in tensors if (match := re.match(r"blocks\.(\d+)\.", key))),
        num_heads=1,
        mlp_ratio=hidden / embed_dim,
        qkv_bias="blocks.0.attention.query.linear.bias" in tensors,
    )


def _size_by_position(state: Mapping[str, Tensor], preset: ModelConfig) -> int | None:
    return math.isqrt(state["pos_embed"].shape[1]) * preset.patch_size if "pos_embed" in state else None


def _state_dict(checkpoint: Mapping[str, Any], name: str) -> dict[str, Tensor]:
    # Official: the image scripts write `state_dict`, the event script writes `model`.
    state = checkpoint.get("state_dict", checkpoint.get("model", checkpoint))
    if not isinstance(state, Mapping) or not state or not all(isinstance(x, Tensor) for x in state.values()):
        raise ValueError(f"{name} holds no weights: expected tensors by name, or an entry state_dict or model of them.")
    return {str(key).removeprefix("module."): tensor for key, tensor in state.items()}


def _read(path: Path) -> Mapping[str, Any]:
    check_is_file(path)
    if path.suffix == ".safetensors":
        return read_safetensors(path)[1]
    try:
        # Only tensors, plain containers and the training script's argparse.Namespace: nothing a file names is called.
        with torch.serialization.safe_globals([argparse.Namespace]), warnings.catch_warnings(action="ignore"):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        blocked = re.search(r"GLOBAL (\S+)", str(error))
        what = f"carries code ({blocked[1]})" if blocked else "is not a checkpoint of tensors"
        raise ValueError(f"{path} {what}; it was not loaded and nothing in it was executed.") from None
    except Exception as error:  # damage surfaces anywhere in the reader, as anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} is damaged or not a PyTorch checkpoint ({reason}).") from None
    if not isinstance(checkpoint, Mapping):
        raise ValueError(f"{path} holds a {type(checkpoint).__name__}, expected a state dict.")
    return checkpoint


def _summary(names: set[str]) -> str:
    kinds = sorted(
        {re.sub(r"block\.\d+", "block.*", name).removesuffix(".weight").removesuffix(".bias") for name in names}
    )
    return ", ".join(kinds)
