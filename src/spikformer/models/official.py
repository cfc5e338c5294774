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
from typing import Any, NamedTuple

import torch
from torch import Tensor

from spikformer.config import ModelConfig
from spikformer.models.files import assemble, read_safetensors
from spikformer.models.spikformer import Spikformer

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


class Variant(NamedTuple):
    """What one of the authors' three model files fixes, and no weight tells."""

    pool_stages: tuple[bool, ...]
    attention_scale: float
    linear_init: str
    time_steps: int


VARIANTS = {
    "cifar": Variant((False, False, True, True), 0.125, "trunc_normal", 4),
    "imagenet": Variant((True, True, True, True), 0.125, "torch", 4),
    "dvs": Variant((True, True, True, True), 0.25, "torch", 16),
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

    variant = detect_variant(state, name)
    never_used = {key for key in state if _NEVER_USED.fullmatch(key)}
    if never_used:
        logger.warning(
            "Dropped %d tensors that the authors' network never uses: %s", len(never_used), _summary(never_used)
        )
    tensors = {translate(key): tensor.clone() for key, tensor in state.items() if key not in never_used}
    tensors = {key: x.flatten(1) if ".linear.weight" in key else x for key, x in tensors.items()}  # 1×1 kernels
    config = _config(variant, state, tensors, num_heads).override(
        time_steps=time_steps or arguments.get("time_step") or VARIANTS[variant].time_steps,
        image_size=image_size or arguments.get("img_size") or _size_by_position(state, VARIANTS[variant]),
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


def _config(variant: str, state: Mapping[str, Tensor], tensors: Mapping[str, Tensor], num_heads: int) -> ModelConfig:
    try:
        hidden, embed_dim = tensors["blocks.0.mlp.hidden.linear.weight"].shape
        num_classes = len(tensors["head.weight"])
        in_channels = tensors["stem.stages.0.conv.weight"].shape[1]
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"The checkpoint lacks what tells its sizes ({error}).") from None
    fixed = VARIANTS[variant]
    return ModelConfig(
        image_size=None,
        in_channels=in_channels,
        num_classes=num_classes,
        embed_dim=embed_dim,
        depth=1 + max(int(match[1]) for key in tensors if (match := re.match(r"blocks\.(\d+)\.", key))),
        num_heads=num_heads,
        mlp_ratio=hidden / embed_dim,
        pool_stages=fixed.pool_stages,
        attention_scale=fixed.attention_scale,
        qkv_bias="blocks.0.attention.query.linear.bias" in tensors,
        linear_init=fixed.linear_init,  # type: ignore[arg-type]
    )


def _size_by_position(state: Mapping[str, Tensor], variant: Variant) -> int | None:
    if "pos_embed" not in state:
        return None
    return math.isqrt(state["pos_embed"].shape[1]) * 2 ** sum(variant.pool_stages)


def _state_dict(checkpoint: Mapping[str, Any], name: str) -> dict[str, Tensor]:
    state = checkpoint.get("state_dict", checkpoint)
    if not isinstance(state, Mapping) or not state or not all(isinstance(x, Tensor) for x in state.values()):
        raise ValueError(f"{name} holds no state dict: expected tensors by name, or a `state_dict` entry of them.")
    return {str(key).removeprefix("module."): tensor for key, tensor in state.items()}


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
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
    except (RuntimeError, EOFError, ValueError, KeyError, AttributeError, OSError) as error:
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
