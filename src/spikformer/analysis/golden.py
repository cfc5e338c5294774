"""What the authors' code computes on small random networks, in float64: the reference for parity.

A recording holds input, weights, logits, spike counts, loss and gradients. In a folder of them, those of Spikformer's
three variants are at its top, those of other networks at its top or in `family`. Of these, the package has seven, of
most other architectures, without the gradients of most matrices, made from a folder of whole ones by

    python -c "from spikformer.analysis.golden import shorten; shorten('FOLDER')"
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from safetensors.torch import save
from torch import Tensor

from spikformer.errors import FileError
from spikformer.models import SpikingNetwork, from_official
from spikformer.models.files import read_safetensors
from spikformer.models.importers import recognise

GOLDEN_FOLDER = Path(__file__).parent / "golden_data"
VARIANTS = ("cifar10", "imagenet", "cifar10dvs")
FAMILY = {
    "cml_spikformer_cifar": "cml_spikformer_4_384_cifar10",
    "spikingformer_cifar": "spikingformer_4_384_cifar10",
    "spikingformer_imagenet": "spikingformer_8_512_imagenet",
    "spikingformer_dvs": "spikingformer_2_256_cifar10dvs",
    "cml_spikingformer_cifar": "cml_spikingformer_4_384_cifar10",
    "cml_spikingformer_imagenet": "cml_spikingformer_8_512_imagenet",
    "cml_spikingformer_dvs": "cml_spikingformer_2_256_cifar10dvs",
    "sdt_cifar": "spike_driven_transformer_2_512_cifar10",
    "sdt_imagenet": "spike_driven_transformer_8_512_imagenet",
    "sdt_dvs_tet": "spike_driven_transformer_2_256_cifar10dvs",
    "sdt_plif_cifar": "spike_driven_transformer_2_512_cifar10",
    "sew_resnet_add": "sew_resnet_18_imagenet",
    "sew_resnet_and": "sew_resnet_18_imagenet",
    "sew_resnet_iand": "sew_resnet_18_imagenet",
    "sew_resnet_bottleneck": "sew_resnet_50_imagenet",
    "sew_dvs": "sew_wide_7b_net_cifar10dvs",
    "maxresnet_cifar": "max_resnet_18_cifar10",
    "qkformer_cifar": "qkformer_4_384_cifar10",
    "qkformer_cifar_fixed": "qkformer_4_384_cifar10",
    "qkformer_imagenet": "qkformer_10_512_imagenet",
    "qkformer_imagenet_fixed": "qkformer_10_512_imagenet",
    "qkformer_dvs": "qkformer_2_256_cifar10dvs",
    "qkformer_dvs_fixed": "qkformer_2_256_cifar10dvs",
    "maxformer_cifar": "maxformer_4_384_cifar10",
    "maxformer_imagenet": "maxformer_10_384_imagenet",
    "maxformer_dvs": "maxformer_2_256_cifar10dvs",
    "msqkformer_cifar": "ms_qkformer_4_384_cifar10",
    "msqkformer_imagenet": "ms_qkformer_10_384_imagenet",
}
"""Recordings of other networks, and the presets whose mathematics they have."""
WITH_BATCH_LEAK = ("qkformer_cifar", "qkformer_imagenet", "qkformer_dvs")
"""Recordings of published behaviour; their twins ("…_fixed") have the same weights and input."""
IN_PACKAGE = (
    "cml_spikformer_cifar",
    "spikingformer_cifar",
    "cml_spikingformer_cifar",
    "sdt_cifar",
    "qkformer_cifar_fixed",
    "maxformer_cifar",
    "sew_resnet_add",
)
"""Recordings of other networks that the package has, shortened: 2.65 MB in all."""
_SHORTENED = "shortened"  # in a file's metadata
_TET_WEIGHT, _TET_TARGET = 0.001, 1.0


@dataclass(frozen=True)
class Golden:
    """One variant's recorded run; names of gradients and neurons are translated to ours."""

    variant: str
    state: dict[str, Tensor]
    num_heads: int | None
    time_steps: int
    extra_fields: dict[str, Any]
    """Fields of the config that weights do not determine: how blocks of SEW networks join."""
    input: Tensor
    target: Tensor
    eval_logits: Tensor
    train_logits: Tensor
    train_loss: Tensor
    gradients: dict[str, Tensor]
    spike_counts: dict[str, tuple[int, int]]
    shortened: bool = False
    """Whether `gradients` are those of `kept_gradients` alone."""

    def model(self) -> SpikingNetwork:
        known: dict[str, Any] = {"num_heads": self.num_heads, "time_steps": self.time_steps, **self.extra_fields}
        if self.variant in FAMILY:
            known |= {"preset": FAMILY[self.variant], "image_size": tuple(self.input.shape[-2:])}
        return from_official(self.state, batch_leak=self.variant in WITH_BATCH_LEAK, **known)

    def logits(self, model: SpikingNetwork) -> Tensor:
        """What the authors' network returns: logits [B, K], or those of every step [T, B, K] where it was TET's."""
        return model.forward_steps(self.input) if self.eval_logits.ndim == 3 else model(self.input)

    def loss(self, logits: Tensor) -> Tensor:
        """Cross-entropy; of every step on its own with TET (Deng et al., 2022), beside a pull of all logits to 1."""
        if logits.ndim == 2:
            return F.cross_entropy(logits, self.target)
        cross_entropy = F.cross_entropy(logits.flatten(0, 1), self.target.repeat(len(logits)))
        return (1 - _TET_WEIGHT) * cross_entropy + _TET_WEIGHT * (logits - _TET_TARGET).square().mean()


def kept_gradients(gradients: Mapping[str, Tensor], in_channels: int) -> dict[str, Tensor]:
    """Those of vectors, and of the convolution that reads pixels: backward passes of all other layers lead to it."""
    return {name: x for name, x in gradients.items() if x.ndim < 2 or (x.ndim == 4 and x.shape[1] == in_channels)}


def list_goldens(folder: Path = GOLDEN_FOLDER) -> list[str]:
    """Names of the recordings in a folder; raises where there are none."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} of golden files.")
    known = (*VARIANTS, *FAMILY)
    found = [name for name in known if _path(name, folder).is_file()]
    if not found:
        raise FileNotFoundError(f"There is no file {known[0]}.safetensors in {folder}, nor another recording.")
    return found


def load_golden(variant: str, folder: Path = GOLDEN_FOLDER) -> Golden:
    """One recording from a folder of them; raises for a file of another kind."""
    path = _path(variant, folder)
    try:
        return _parse(variant, *read_safetensors(path))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise FileError(path, f"is not a golden file: it lacks {error}.", "foreign") from None


def shorten(source: str | os.PathLike[str], target: Path = GOLDEN_FOLDER) -> None:
    """Write what the package has of a folder's recordings of other networks."""
    for name in IN_PACKAGE:
        metadata, tensors = read_safetensors(_path(name, Path(source)))
        gradients = {key: x for key, x in tensors.items() if key.startswith("grad.")}
        kept = kept_gradients(gradients, in_channels=tensors["input"].shape[-3])
        left = {key: x for key, x in tensors.items() if key not in gradients or key in kept}
        metadata[_SHORTENED] = "gradients of vectors and of the first convolution"
        path = target / "family" / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(save(left, metadata))


def _path(variant: str, folder: Path) -> Path:
    path = folder / f"{variant}.safetensors"
    return path if variant in VARIANTS or path.is_file() else folder / "family" / path.name


def _parse(variant: str, metadata: dict[str, str], tensors: dict[str, Tensor]) -> Golden:
    sizes = json.loads(metadata["config"])
    counts = json.loads(metadata["spike_counts"])
    state = _under("state.", tensors)
    translate = recognise(state).translate
    x = tensors["input"]
    return Golden(
        variant=variant,
        state=state,
        num_heads=sizes.get("h"),
        time_steps=sizes["T"],
        extra_fields={"join": sizes["cnf"].lower()} if "cnf" in sizes else {},
        input=x.transpose(0, 1) if x.ndim == 5 else x,  # Official: event frames are [B, T, C, H, W]
        target=tensors["target"],
        eval_logits=tensors["eval_logits"],
        train_logits=tensors["train_logits"],
        train_loss=tensors["train_loss"],
        gradients={translate(name): x for name, x in _under("grad.", tensors).items()},
        spike_counts={translate(name): (spikes, steps) for name, (spikes, steps) in counts.items()},
        shortened=_SHORTENED in metadata,
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}
