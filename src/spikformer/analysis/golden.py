"""What the authors' code computes on small random networks, in float64: the reference for parity.

The files hold inputs, weights, logits, spike counts, loss and gradients for each of its three variants.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from spikformer.models import SpikingNetwork, from_official
from spikformer.models.files import read_safetensors
from spikformer.models.official import translate

FOLDER = Path(__file__).parent / "golden_data"
VARIANTS = ("cifar10", "imagenet", "cifar10dvs")


@dataclass(frozen=True)
class Golden:
    """One variant's recorded run; names of gradients and neurons are translated to ours."""

    variant: str
    state: dict[str, Tensor]
    num_heads: int
    time_steps: int
    input: Tensor
    target: Tensor
    eval_logits: Tensor
    train_logits: Tensor
    train_loss: Tensor
    gradients: dict[str, Tensor]
    spike_counts: dict[str, tuple[int, int]]

    def model(self) -> SpikingNetwork:
        return from_official(self.state, num_heads=self.num_heads, time_steps=self.time_steps)


def load_golden(variant: str, folder: Path = FOLDER) -> Golden:
    """One recording from a folder of them; another file of that name is refused."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} of golden files.")
    path = folder / f"{variant}.safetensors"
    try:
        return _parse(variant, *read_safetensors(path))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a golden file: it lacks {error}.") from None


def _parse(variant: str, metadata: dict[str, str], tensors: dict[str, Tensor]) -> Golden:
    sizes = json.loads(metadata["config"])
    counts = json.loads(metadata["spike_counts"])
    x = tensors["input"]
    return Golden(
        variant=variant,
        state=_under("state.", tensors),
        num_heads=sizes["h"],
        time_steps=sizes["T"],
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
