"""What the authors' code computes on small random networks, in float64: the reference for parity.

The files hold inputs, weights, logits, spike counts, loss and gradients for each of its variants; other folders hold
recordings of the successors' code in the same format.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.nn.functional as F
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
_TET_WEIGHT, _TET_TARGET = 0.001, 1.0


@dataclass(frozen=True)
class Golden:
    """One variant's recorded run; names of gradients and neurons are translated to ours."""

    variant: str
    state: dict[str, Tensor]
    num_heads: int | None
    time_steps: int
    untold: dict[str, Any]
    """Further fields that no weight tells: how blocks of SEW networks join."""
    input: Tensor
    target: Tensor
    eval_logits: Tensor
    train_logits: Tensor
    train_loss: Tensor
    gradients: dict[str, Tensor]
    spike_counts: dict[str, tuple[int, int]]

    def model(self) -> SpikingNetwork:
        told: dict[str, Any] = {"num_heads": self.num_heads, "time_steps": self.time_steps, **self.untold}
        if self.variant in FAMILY:
            told |= {"preset": FAMILY[self.variant], "image_size": tuple(self.input.shape[-2:])}
        return from_official(self.state, batch_leak=self.variant in WITH_BATCH_LEAK, **told)

    def logits(self, model: SpikingNetwork) -> Tensor:
        """What the authors' network returns: logits [B, K], or those of every step [T, B, K] where it was TET's."""
        return model.forward_steps(self.input) if self.eval_logits.ndim == 3 else model(self.input)

    def loss(self, logits: Tensor) -> Tensor:
        """Cross-entropy; of every step on its own with TET (Deng et al., 2022), beside a pull of all logits to 1."""
        if logits.ndim == 2:
            return F.cross_entropy(logits, self.target)
        cross_entropy = F.cross_entropy(logits.flatten(0, 1), self.target.repeat(len(logits)))
        return (1 - _TET_WEIGHT) * cross_entropy + _TET_WEIGHT * (logits - _TET_TARGET).square().mean()


def load_golden(variant: str, folder: Path = GOLDEN_FOLDER) -> Golden:
    """One recording from a folder of them; raises for a file of another kind."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} of golden files.")
    path = folder / f"{variant}.safetensors"
    try:
        return _parse(variant, *read_safetensors(path))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise FileError(path, f"is not a golden file: it lacks {error}.", "foreign") from None


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
        untold={"join": sizes["cnf"].lower()} if "cnf" in sizes else {},
        input=x.transpose(0, 1) if x.ndim == 5 else x,  # Official: event frames are [B, T, C, H, W]
        target=tensors["target"],
        eval_logits=tensors["eval_logits"],
        train_logits=tensors["train_logits"],
        train_loss=tensors["train_loss"],
        gradients={translate(name): x for name, x in _under("grad.", tensors).items()},
        spike_counts={translate(name): (spikes, steps) for name, (spikes, steps) in counts.items()},
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}
