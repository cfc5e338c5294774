"""Augmenter: a policy at work on batches of one data set.

Every decision is drawn on the CPU from the generator that is handed in, so that any device, and a run that was
resumed, takes the same ones.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spikformer.data.augmentation.mixing import mix as mix_batch
from spikformer.data.augmentation.mixing import smooth_targets
from spikformer.data.augmentation.policy import COLOUR, Augmentation
from spikformer.data.augmentation.rectangles import draw_rectangles, fill_rectangles
from spikformer.data.dataset import DataSet


class Augmenter:
    """From samples as they are stored to inputs as a model trains on them, on whatever device they are."""

    def __init__(self, augmentation: Augmentation, data: DataSet) -> None:
        _check_suits(augmentation, data)
        self.augmentation = augmentation
        self.data = data

    def __call__(
        self, samples: Tensor, labels: Tensor, random: np.random.Generator, *, mix: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Inputs and targets [B, K] of images [B, C, H, W] of bytes, or of event frames [B, T, 2, H, W].

        Images come back normalised, frames with time first. Without `mix` targets are smoothed all the same.
        """
        self._check(samples)
        # The frames of a sample become its channels, so that all of them meet the same fate.
        x = self.data.scale(samples).flatten(1, 2) if self.data.events else samples
        x = self._operate(self._flip(x, random), random)
        x = x if self.data.events else self.data.normalise(self.data.scale(x))
        targets = smooth_targets(labels.to(x.device), len(self.data.class_names), self.augmentation.label_smoothing)
        if mix:
            x, targets = mix_batch(x, targets, self.augmentation, random)
        x = self._erase(x, random)  # Official: what was mixed is erased, as timm's fast loader does
        if self.data.events:
            x = x.unflatten(1, samples.shape[1:3]).transpose(0, 1)  # [T, B, 2, H, W]
        return x, targets

    def _flip(self, x: Tensor, random: np.random.Generator) -> Tensor:
        if not self.augmentation.flip:
            return x
        flipped = torch.as_tensor(random.random(len(x)) < self.augmentation.flip, device=x.device)
        return torch.where(flipped.view(-1, 1, 1, 1), x.flip(-1), x)

    def _operate(self, x: Tensor, random: np.random.Generator) -> Tensor:
        if not self.augmentation.operations:
            return x
        # kornia takes two seconds to import; only those who train pay them.
        from spikformer.data.augmentation.operations import apply_operations, draw_operations

        for _ in range(self.augmentation.num_operations):
            names, strengths = draw_operations(self.augmentation, len(x), random)
            x = apply_operations(x, names, strengths, random, fill=self._fill(x))
        return x

    def _fill(self, x: Tensor) -> Tensor | float:
        """The mean colour of images, as in timm; no events."""
        if self.data.events:
            return 0.0
        mean = self.data.preprocessing.mean
        if mean is None:
            return 128.0
        return torch.tensor([round(255 * value) for value in mean], device=x.device).view(-1, 1, 1)

    def _erase(self, x: Tensor, random: np.random.Generator) -> Tensor:
        """One rectangle of zeros in 2 % to a third of the picture, ten tries to fit it in, as in timm."""
        if not self.augmentation.erase:
            return x
        erased = np.flatnonzero(random.random(len(x)) < self.augmentation.erase)
        rectangles = np.zeros((len(x), 4), np.int64)
        shares = random.uniform(0.02, 1 / 3, (len(erased), 10))
        rectangles[erased] = draw_rectangles(shares, (x.shape[-2], x.shape[-1]), random, widest=1 / 0.3)
        return fill_rectangles(x, rectangles, 0.0)

    def _check(self, samples: Tensor) -> None:
        events = self.data.events
        if samples.ndim != (5 if events else 4) or (samples.dtype != torch.uint8 and not events):
            wanted = "frames [B, T, 2, H, W]" if events else "images [B, C, H, W] of uint8"
            got = f"{list(samples.shape)} of {str(samples.dtype).removeprefix('torch.')}"
            raise ValueError(f"Samples of {self.data.name} must be {wanted}, got {got}; hand them over as stored.")


def _check_suits(augmentation: Augmentation, data: DataSet) -> None:
    if augmentation.flip and not data.can_mirror:
        raise ValueError(
            f"flip must be 0 for {data.name}, where left and right mean something, got {augmentation.flip!r}; "
            "leave mirror images out."
        )
    colours = [name for name in augmentation.operations if name in COLOUR]
    if data.events and colours:
        raise ValueError(
            f"operations for {data.name} must not touch colour, because events have none, got {colours[0]!r}; "
            "rotate, shear, translate or cut out instead."
        )
