"""Published checkpoints, of Spikformer, its successors and SEW-ResNet, as our models.

The naming (see `official_names`, `residual_names`) and the sizes follow from the keys and shapes; the number of heads
mostly does not, so it is an argument. Where names and shapes fit several published networks that compute differently,
so is the preset. What the authors' networks carry but never use (layer norms, a mixing of heads) is dropped and named.
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

from spikformer.config import NetworkConfig
from spikformer.errors import FieldError, FileError, printable
from spikformer.io import check_is_file
from spikformer.models.base import SpikingNetwork
from spikformer.models.checkpoint import read_checkpoint, weights_in
from spikformer.models.files import assemble, read_safetensors
from spikformer.models.hierarchical_names import NAMINGS as IN_STAGES
from spikformer.models.official_names import NAMINGS as IN_ONE_WIDTH
from spikformer.models.official_names import Naming
from spikformer.models.residual_names import RESIDUAL_NAMINGS, ResidualNaming, without_wrappers
from spikformer.presets import get_preset

STATE_DICT = "The state dict"
"""What messages call weights that are in no file."""
logger = logging.getLogger(__name__)

AnyNaming = Naming | ResidualNaming

_LONGEST_NAME = 200  # of a tensor
_NOT_IN_WEIGHTS = (
    *("pool_stages", "pool_after", "stem", "pooled_conv", "stem_stride", "stem_pool"),
    *("tau", "attention", "attention_scale", "time_steps", "linear_init"),
)
NAMINGS: tuple[AnyNaming, ...] = (*IN_ONE_WIDTH, *IN_STAGES, *RESIDUAL_NAMINGS)


def from_official(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    num_heads: int | None = None,
    preset: str | None = None,
    time_steps: int | None = None,
    image_size: int | tuple[int, int] | None = None,
    batch_leak: bool = False,
    **extra_fields: Any,
) -> SpikingNetwork:
    """A model in eval mode from a file (.pth, .pth.tar, .safetensors) or a state dict, in the dtype it has there.

    `num_heads` is needed for transformers, unless the authors' code fixes it or the checkpoint determines it, by its
    training arguments or the shape of a tensor. `extra_fields` are fields of the config that weights do not determine
    and in which the trained network differed from its preset, such as `join="iand"` of a SEW-ResNet.

    `preset` names the published network whose mathematics the weights have, of any size; it is needed where they fit
    several. The image size is taken from the training arguments or the position embedding where the checkpoint has
    them; otherwise it stays open, and the model takes any size that its pooling divides.

    QKFormer's published weights were trained with samples that leak into each other; `batch_leak` keeps that behaviour,
    which their published accuracy needs.

    A .pth file is read by `checkpoint`, in at most four times its size of memory; nothing in it is executed.
    """
    name = STATE_DICT if isinstance(source, Mapping) else str(source)
    checkpoint = source if isinstance(source, Mapping) else _read(Path(source))
    arguments = vars(checkpoint["args"]) if isinstance(checkpoint.get("args"), argparse.Namespace) else {}
    arguments = {key: value for key, value in arguments.items() if type(value) is int}
    state = _state_dict(checkpoint, name)

    naming = recognise(state, name)
    never_used = {key for key in state if naming.never_used.fullmatch(key)}
    if never_used:
        logger.warning(
            "Dropped %d tensors that the authors' network never uses: %s", len(never_used), _summary(never_used)
        )
    tensors = {
        own: _as_ours(own, tensor)
        for key, tensor in state.items()
        if key not in never_used and (own := naming.translate(key))
    }
    sizes = _sizes(naming, tensors, name)
    like = _preset(naming, preset, sizes, name)
    neutral: dict[str, Any] = {"image_size": (like.patch_size,) * 2}
    if isinstance(naming, Naming):
        num_heads = _heads(num_heads, naming.num_heads, arguments, sizes["embed_dim"], state, name)
        neutral["num_heads"] = 1
    elif num_heads is not None:
        raise FieldError(
            "num_heads", f"{name} is of {naming.title}, which has no heads; leave num_heads= (--num-heads) out."
        )
    if num_heads is not None:
        extra_fields["num_heads"] = num_heads
    trained_steps = arguments.get("time_step", arguments.get("T", like.time_steps))
    trained_size = arguments.get("img_size", sizes.get("image_size", _size_by_position(state, like, name)))
    if hasattr(like, "qkv_bias"):
        sizes["qkv_bias"] = "blocks.0.attention.query.linear.bias" in tensors
    if batch_leak:
        if not hasattr(like, "batch_leak"):
            message = f"{name} is of {naming.title}, which has no batch leak; batch_leak is for QKFormer."
            raise FieldError("batch_leak", message)
        sizes["batch_leak"] = True
    try:
        like = like.override(**neutral | sizes)
    except FieldError as error:
        raise FileError(name, f"has sizes that no network can have: {error}", at=error.field) from None
    config = like.override(
        **extra_fields,
        time_steps=trained_steps if time_steps is None else time_steps,
        image_size=trained_size if image_size is None else image_size,
    )
    return assemble(config, tensors, name)


def recognise(state: Mapping[str, Tensor], name: str = STATE_DICT) -> AnyNaming:
    """The naming of a checkpoint's tensors."""
    names = {without_wrappers(key) for key in state}
    for naming in NAMINGS:
        if all(sign in names for sign in naming.signs):
            return naming.fitted(state) if isinstance(naming, Naming) else naming
    known = "; ".join(naming.title for naming in NAMINGS)
    raise FileError(name, f"is not a checkpoint of a network that is known here by its names: {known}.", "foreign")


def _preset(naming: AnyNaming, wanted: str | None, sizes: Mapping[str, Any], name: str) -> Any:
    """The config of the published network that the weights are of; its sizes may be others."""
    known = {preset: get_preset(preset).config for preset in naming.presets}
    if wanted is not None:
        config = get_preset(wanted).config
        if not any(_same_mathematics(config, other) for other in known.values()):
            raise FieldError(
                "preset", f"{name} has the names of {naming.title}, which {wanted!r} is not; try {', '.join(known)}."
            )
        return config
    for fields in (("in_channels", "num_classes", "embed_dim"), ("in_channels", "num_classes"), ("in_channels",), ()):
        fitting = {
            preset: config
            for preset, config in known.items()
            if all(getattr(config, field, None) == sizes.get(field) for field in fields)
        }
        if fitting:
            break
    first, *others = fitting.values()
    if not all(_same_mathematics(first, other) for other in others):
        raise FieldError(
            "preset",
            f"{name} fits several networks that compute differently; pass preset= (--preset) with one of "
            f"{', '.join(fitting)}.",
        )
    return first


def _same_mathematics(config: NetworkConfig, other: NetworkConfig) -> bool:
    same = all(getattr(config, field, None) == getattr(other, field, None) for field in _NOT_IN_WEIGHTS)
    return same and type(config) is type(other)


def _heads(
    given: int | None,
    fixed: int | None,
    arguments: Mapping[str, int],
    embed_dim: int,
    state: Mapping[str, Tensor],
    name: str,
) -> int:
    """The number of heads that the authors' code fixes, the checkpoint has or the caller gives; all must agree."""
    mixing = state.get("block.0.attn.talking_heads.weight")  # never used, and as wide as there are heads
    mixed = None if mixing is None or mixing.ndim == 0 else len(mixing)
    trained = fixed or arguments.get("num_heads", mixed)
    num_heads = trained if given is None else given
    if num_heads is None:
        raise FieldError("num_heads", f"{name} does not say how many heads it has; pass num_heads= (--num-heads).")
    if trained not in (None, num_heads):
        raise FieldError("num_heads", f"{name} was trained with num_heads={trained}, got num_heads={num_heads}.")
    if num_heads < 1 or embed_dim % num_heads:
        raise FieldError(
            "num_heads",
            f"{name} has width {embed_dim}, which cannot be divided by num_heads={num_heads}; "
            "give the number of heads it was trained with.",
        )
    return num_heads


def _as_ours(own_name: str, tensor: Tensor) -> Tensor:
    """A copy, in the shape and type that our network has; one that cannot be brought there is reported later."""
    if own_name.endswith(".linear.weight") and tensor.ndim > 2 and tensor.shape[2:].numel() == 1:
        tensor = tensor.reshape(tensor.shape[:2])  # 1×1 kernels
    if own_name.endswith(".num_batches_tracked") and tensor.ndim == 0:
        tensor = tensor.long()  # a cast of the whole file may have made counters float
    if own_name.endswith(".gain_logit") and tensor.numel() == 1:
        tensor = tensor.reshape(())
    return tensor.clone()


def _sizes(naming: AnyNaming, tensors: Mapping[str, Tensor], name: str) -> dict[str, Any]:
    """The fields of a config that weights determine."""
    try:
        return naming.sizes(tensors)
    except KeyError as error:
        raise FileError(name, f"lacks tensors that determine its sizes ({error}).", at=error.args[0]) from None
    except (IndexError, ValueError, TypeError, ZeroDivisionError) as error:
        raise FileError(name, f"lacks tensors that determine its sizes ({error}).") from None


def _size_by_position(state: Mapping[str, Tensor], preset: NetworkConfig, name: str) -> int | None:
    """Of a square picture, by its number of tokens."""
    if "pos_embed" not in state:
        return None
    shape = state["pos_embed"].shape
    if len(shape) != 3:
        raise FileError(name, f": pos_embed should be [1, N, D], is {list(shape)}.", "unfit", at="pos_embed")
    side = math.isqrt(shape[1])
    return side * preset.patch_size if side * side == shape[1] else None


def _state_dict(checkpoint: Mapping[str, Any], name: str) -> dict[str, Tensor]:
    state = weights_in(checkpoint)
    if not isinstance(state, Mapping) or not state or not all(isinstance(x, Tensor) for x in state.values()):
        raise FileError(
            name, "holds no weights: expected tensors by name, or an entry state_dict, model or net of them.", "empty"
        )
    for key, tensor in state.items():
        if len(str(key)) > _LONGEST_NAME or not str(key).isprintable():
            raise FileError(
                name, f"holds a tensor called {printable(key)}; it is damaged or not a checkpoint.", "unsafe"
            )
        if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
            problem = f": {key} has no plain values; convert it with .to_dense() or .dequantize()."
            raise FileError(name, problem, "unsupported", at=key)
        if tensor.nbytes > tensor.untyped_storage().nbytes():
            problem = f": {key} is expanded to {list(tensor.shape)}; make it .contiguous()."
            raise FileError(name, problem, "too_large", at=key)
    names = {without_wrappers(str(key)): tensor for key, tensor in state.items()}
    if len(names) < len(state):
        raise FileError(name, "holds tensors whose names differ in 'module.' alone; it is not one network's.", "unfit")
    return names


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
