"""Sums over what a layer reads, step by step: they add up over batches, so a whole data set needs no more memory."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from spikformer.analysis.recorder import AttentionRecord

NUM_BINS = 17
"""Integers 0 to 15 one by one, then 16 and above together."""


@dataclass
class _Sums:
    """Arrays over time steps, added field by field."""

    def add(self, other: _Sums) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass
class LayerInput(_Sums):
    """What enters a layer at each of T steps: spikes, small integers from residual sums, or real numbers."""

    num_entries: np.ndarray
    total: np.ndarray
    num_nonzero: np.ndarray
    num_fractions: np.ndarray
    """Entries that are negative or not an integer, and so not a count of spikes."""
    histogram: np.ndarray
    """[T, 17]: how often each integer came."""

    @classmethod
    def of(cls, x: Tensor) -> LayerInput:
        """Of [T, …]."""
        x = x.detach().flatten(1)
        whole = (x == x.floor()) & (x >= 0)
        counts = [_histogram(step[kept]) for step, kept in zip(x, whole, strict=True)]
        return cls(
            num_entries=np.full(len(x), x.shape[1]),
            total=x.sum(1, dtype=torch.float64).numpy(force=True),
            num_nonzero=x.count_nonzero(1).numpy(force=True),
            num_fractions=(~whole).sum(1).numpy(force=True),
            histogram=torch.stack(counts).numpy(force=True),
        )

    @property
    def mean(self) -> np.ndarray:
        """The firing rate, where the input is spikes; a 3 counts as three."""
        return self.total / self.num_entries

    @property
    def density(self) -> np.ndarray:
        """The share of entries that are not zero."""
        return self.num_nonzero / self.num_entries

    @property
    def ones(self) -> np.ndarray:
        """The share of entries that are exactly one."""
        return self.histogram[:, 1] / self.num_entries

    @property
    def binary(self) -> bool:
        return bool(self.histogram[:, :2].sum() == self.num_entries.sum())


def _histogram(whole: Tensor) -> Tensor:
    return torch.bincount(whole.clamp(max=NUM_BINS - 1).to(torch.uint8), minlength=NUM_BINS)


@dataclass
class AttentionInput(_Sums):
    """What meets in Q, K and V at each of T steps.

    A coincidence is a pair of entries that are both not zero, the only pairs that a spiking product has to add.
    """

    num_entries: np.ndarray
    """Of each of Q, K and V."""
    query_total: np.ndarray
    key_total: np.ndarray
    value_total: np.ndarray
    query_key_first: np.ndarray
    """[T, 2]: coincidences in Q Kᵀ, then of its result with V."""
    key_value_first: np.ndarray
    """[T, 2]: coincidences in Kᵀ V, then of Q with its result."""
    num_not_spikes: np.ndarray
    """[3]: entries of Q, K and V that are neither 0 nor 1."""

    @classmethod
    def of(cls, seen: AttentionRecord) -> AttentionInput:
        tokens = (seen.query, seen.key, seen.value)  # [T, B, h, N, d]
        query, key, value = (x != 0 for x in tokens)
        scores = (seen.maps() if seen.softmax else seen.query @ seen.key.transpose(-2, -1)) != 0
        context = (seen.key.transpose(-2, -1) @ seen.value) != 0
        return cls(
            num_entries=np.full(len(value), value[0].numel()),
            query_total=_over_steps(seen.query),
            key_total=_over_steps(seen.key),
            value_total=_over_steps(seen.value),
            query_key_first=np.stack(
                [_pairs(query.sum(-2), key.sum(-2)), _pairs(scores.sum(-2), value.sum(-1))], axis=-1
            ),
            key_value_first=np.stack(
                [_pairs(key.sum(-1), value.sum(-1)), _pairs(query.sum(-2), context.sum(-1))], axis=-1
            ),
            num_not_spikes=np.array([((x != 0) & (x != 1)).sum().item() for x in tokens]),
        )

    @property
    def rates(self) -> dict[str, np.ndarray]:
        """Mean of Q, K and V at each step."""
        totals = {"Q": self.query_total, "K": self.key_total, "V": self.value_total}
        return {name: total / self.num_entries for name, total in totals.items()}

    @property
    def binary(self) -> tuple[bool, bool, bool]:
        """Whether Q, K and V are spikes."""
        query, key, value = self.num_not_spikes == 0
        return bool(query), bool(key), bool(value)


def _over_steps(x: Tensor) -> np.ndarray:
    return x.flatten(1).sum(1, dtype=torch.float64).numpy(force=True)


def _pairs(one: Tensor, other: Tensor) -> np.ndarray:
    """Σ over what two tensors [T, …] of counts share, of the product of their counts."""
    return (one * other).flatten(1).sum(1).numpy(force=True)
