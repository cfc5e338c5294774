"""Augmenter: a policy at work on batches of one data set.

Every decision is drawn on the CPU from the generator that is handed in, so that any device, and a run that was
resumed, takes the same ones.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from spikformer.data.augmentation.policy import COLOUR, Augmentation
from spikformer.data.dataset import DataSet
from spikformer.errors import FieldError


class Augmenter:
    """From samples as they are stored to inputs as a model trains on them, on whatever device they are."""

    def __init__(self, augmentation: Augmentation, data: DataSet) -> None:
        _check_suits(augmentation, data)
        self.augmentation = augmentation
        self.data = data

    def __call__(
        self,
        samples: Tensor,
        labels: Tensor,
        random: np.random.Generator,
        *,
        mix: bool = True,
        turns: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Inputs and targets [B, K] of images [B, C, H, W] of bytes, or of event frames [B, T, 2, H, W].

        Images come back normalised, frames with time first. Without `mix` targets are smoothed all the same.
        Alternating mirror images need `turns`, see `mirrored_in`.
        """
        self._check(samples)
        samples = self._choose_frames(samples, random)
        # The frames of a sample become its channels, so that all of them are changed alike.
        x = self.data.scale(samples).flatten(1, 2) if self.data.events else samples
        x = self._jitter(self._operate(self._flip(self._crop(x, random), random, turns), random), random)
        x = x if self.data.events else self.data.normalise(self.data.scale(x))
        targets = smooth_targets(labels.to(x.device), len(self.data.class_names), self.augmentation.label_smoothing)
        if mix:
            x, targets = mix_batch(x, targets, self.augmentation, random)
        x = self._erase(x, random)  # Official: what was mixed is erased, as timm's fast loader does
        if self.data.events:
            x = x.unflatten(1, samples.shape[1:3]).transpose(0, 1)  # [T, B, 2, H, W]
        return x, targets

    def _choose_frames(self, samples: Tensor, random: np.random.Generator) -> Tensor:
        """Official: one choice for all samples of a batch, in the order of time."""
        if self.augmentation.num_frames is None:
            return samples
        chosen = np.sort(random.choice(samples.shape[1], self.augmentation.num_frames, replace=False))
        return samples[:, chosen]

    def _crop(self, x: Tensor, random: np.random.Generator) -> Tensor:
        """Ten tries at an area and a shape between 3:4 and 4:3 that fit, else the whole picture, as in timm."""
        # Official: crops are cut out of the file's picture; here out of a sample, which has the network's size already.
        if self.augmentation.crop_scale is None:
            return x
        from spikformer.data.augmentation.operations import resize_rectangles

        height, width = x.shape[-2:]
        shares = random.uniform(*self.augmentation.crop_scale, (len(x), 10))
        rectangles = draw_rectangles(shares, (height, width), random, widest=4 / 3, whole=True)
        empty = rectangles[:, 0] == rectangles[:, 2]
        return resize_rectangles(x, np.where(empty[:, None], (0, 0, height, width), rectangles))

    def _jitter(self, x: Tensor, random: np.random.Generator) -> Tensor:
        if not self.augmentation.color_jitter:
            return x
        from spikformer.data.augmentation.operations import jitter_color

        changes = random.uniform(-self.augmentation.color_jitter, self.augmentation.color_jitter, (len(x), 3))
        return jitter_color(x, changes, random.permuted(np.tile(np.arange(3), (len(x), 1)), axis=1))

    def _flip(self, x: Tensor, random: np.random.Generator, turns: Tensor | None) -> Tensor:
        if self.augmentation.alternate_flip:
            if turns is None:
                raise FieldError("turns", "alternate_flip needs turns: which samples are mirror images in this epoch.")
            flipped = turns.to(x.device)
        elif self.augmentation.flip:
            flipped = torch.as_tensor(random.random(len(x)) < self.augmentation.flip, device=x.device)
        else:
            return x
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
            raise FieldError(
                "samples", f"Samples of {self.data.name} must be {wanted}, got {got}; hand them over as stored."
            )


def mirrored_in(epoch: int, indices: Tensor, seed: int) -> Tensor:
    """Which samples are mirror images in an epoch: half of them, drawn by the seed, and in the next the other half."""
    offset = seed * 40503 % (1 << 31)  # a seed may have 63 bits, and so have these integers
    hashed = (indices.long() * 2654435761 + offset) >> 15  # Knuth's multiplicative hashing
    return (hashed + epoch) % 2 == 1


def _check_suits(augmentation: Augmentation, data: DataSet) -> None:
    for name in ("flip", "alternate_flip"):
        if getattr(augmentation, name) and not data.can_mirror:
            raise FieldError(
                name,
                f"{name} must be off for {data.name}, where left and right mean something, got "
                f"{getattr(augmentation, name)!r}; leave mirror images out.",
            )
    if data.events:
        idle = [name for name in ("crop_scale", "color_jitter") if getattr(augmentation, name)]
        if idle:
            raise FieldError(
                idle[0], f"{idle[0]} is for pictures, and {data.name} has recordings of events; leave it out."
            )
        steps = data.preprocessing.time_steps
        if augmentation.num_frames is not None and steps is not None and augmentation.num_frames > steps:
            raise FieldError(
                "num_frames", f"num_frames must be at most the {steps} of a recording, got {augmentation.num_frames}."
            )
    elif augmentation.num_frames is not None:
        raise FieldError(
            "num_frames", f"num_frames is for recordings of events, and {data.name} has pictures; leave it out."
        )
    colours = [name for name in augmentation.operations if name in COLOUR]
    if data.events and colours:
        raise FieldError(
            "operations",
            f"operations for {data.name} must not touch colour, because events have none, got {colours[0]!r}; "
            "rotate, shear, translate or cut out instead.",
        )


def smooth_targets(labels: Tensor, num_classes: int, smoothing: float) -> Tensor:
    """Targets [B, K]: 1 - s + s/K for the class of the label, s/K for the others."""
    return one_hot(labels.long(), num_classes).float() * (1 - smoothing) + smoothing / num_classes


def mix_batch(x: Tensor, targets: Tensor, policy: Augmentation, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Mix x [B, C, H, W] and its targets with the batch in reverse order: λ·x + (1 - λ)·reversed, or a pasted box."""
    if not (policy.mixup or policy.cutmix) or random.random() >= policy.mix_probability:
        return x, targets
    pastes = bool(policy.cutmix) and (not policy.mixup or random.random() < policy.cutmix_share)
    alpha = policy.cutmix if pastes else policy.mixup
    kept = float(random.beta(alpha, alpha))
    if pastes:
        x, kept = paste_box(x, kept, random)
    else:
        x = kept * x + (1 - kept) * x.flip(0)
    return x, kept * targets + (1 - kept) * targets.flip(0)


def paste_box(x: Tensor, kept: float, random: np.random.Generator) -> tuple[Tensor, float]:
    """Paste a box that covers 1 - kept of the picture from the reversed batch; returns what was really kept.

    The box's centre may lie anywhere, so that the edge can cut some of it off.
    """
    bounds = []
    for side in (x.shape[-2], x.shape[-1]):
        half = int(side * np.sqrt(1 - kept)) // 2
        centre = int(random.integers(side))
        bounds.append(slice(max(centre - half, 0), min(centre + half, side)))
    rows, columns = bounds
    mixed = x.clone()
    mixed[..., rows, columns] = x.flip(0)[..., rows, columns]
    pasted = (rows.stop - rows.start) * (columns.stop - columns.start)
    return mixed, 1 - pasted / (x.shape[-2] * x.shape[-1])


def draw_rectangles(
    shares: np.ndarray,
    size: tuple[int, int],
    random: np.random.Generator,
    *,
    widest: float = 1.0,
    whole: bool = False,
) -> np.ndarray:
    """Top, left, bottom, right [B, 4] of a rectangle that covers the wanted share of the picture, anywhere in it.

    `shares` [B, tries] holds one share a try; the first that fits is taken, and if none does the rectangle is empty.
    Height to width is log-uniform between 1/widest and widest. With `whole` a side may be as long as the picture's.
    """
    height, width = size
    areas = shares * height * width
    aspects = np.exp(random.uniform(-np.log(widest), np.log(widest), shares.shape))
    heights, widths = np.rint(np.sqrt(areas * aspects)), np.rint(np.sqrt(areas / aspects))
    fits = (heights < height + whole) & (widths < width + whole)
    chosen = np.arange(len(shares)), fits.argmax(1)
    heights, widths = ((sides * fits)[chosen].astype(np.int64) for sides in (heights, widths))
    tops, lefts = random.integers(height - heights, endpoint=True), random.integers(width - widths, endpoint=True)
    return np.stack([tops, lefts, tops + heights, lefts + widths], 1)


def fill_rectangles(x: Tensor, rectangles: np.ndarray, fill: Tensor | float) -> Tensor:
    """A copy of x [B, C, H, W] with one rectangle a sample painted over, all channels alike."""
    top, left, bottom, right = torch.as_tensor(rectangles, device=x.device).T[:, :, None, None, None]
    rows = torch.arange(x.shape[-2], device=x.device)[:, None]
    columns = torch.arange(x.shape[-1], device=x.device)
    inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)  # [B, 1, H, W]
    return torch.where(inside, torch.as_tensor(fill, dtype=x.dtype, device=x.device), x)
