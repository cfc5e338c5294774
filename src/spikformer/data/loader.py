"""Batches of a split, in an order that depends on the seed and the epoch alone, whatever reads them.

For training, every process takes its part of each shuffled batch of all: the processes' k-th batches together are
the k-th batch of a single process. For evaluation, samples come in order and each exactly once.

A sample that cannot be read is never silently lost: see `Loader`.
"""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from spikformer.data.dataset import DataSet, Samples
from spikformer.errors import FieldError, shown
from spikformer.validation import check_at_least

logger = logging.getLogger(__name__)

_PATIENCE = 16
_LONGEST_SOCKET_FOLDER = 64  # bytes; Python adds 32 for a socket in it, and Linux has room for 107, macOS for 103
_OTHER_SOCKET_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")


class Batch(NamedTuple):
    """Samples as the set has them, bytes [B, C, H, W] or counts [B, T, 2, H, W]; `DataSet.prepare` is next."""

    samples: Tensor
    labels: Tensor
    indices: Tensor
    """Which samples of the split these are."""
    reasons: tuple[str, ...] = ()
    """Why samples could not be read, a message for each."""
    gave_up: bool = False
    """So many in a row could not be read that no stand-in was found."""


class Loader:
    """A split as batches, epoch after epoch.

    Any number of `workers`, processes that read ahead, gives the same batches; `pin_memory` speeds up copies to a GPU.
    A process among several says its `rank` and the `world_size`; `batch_size` is its own. In training, `repeats` copies
    of a sample follow each other, so that several processes get one each, and an epoch takes no longer for it.

    In training, what cannot be read is replaced by the next sample that can, so that batches keep their size; in
    evaluation it is left out. Either way it is counted in `unreadable`, and the first is reported in a warning, unless
    `quiet`. `strict` raises instead.
    """

    def __init__(
        self,
        data: DataSet,
        split: str,
        batch_size: int,
        *,
        training: bool,
        seed: int = 0,
        workers: int = 0,
        pin_memory: bool = False,
        rank: int = 0,
        world_size: int = 1,
        strict: bool = False,
        quiet: bool = False,
        repeats: int = 1,
    ) -> None:
        check_at_least("batch_size", batch_size, 1)
        check_at_least("workers", workers, 0)
        check_at_least("world_size", world_size, 1)
        if not 0 <= rank < world_size:
            raise FieldError("rank", f"rank must be from 0 to {world_size - 1}, got {rank}.")
        samples = data.split(split)
        if training and len(samples) < batch_size * world_size:
            raise FieldError(
                "batch_size",
                f"Training needs at least one batch of {batch_size * world_size} samples, but {data.name} has "
                f"{len(samples)} for {split}; choose a smaller batch size.",
            )
        self.unreadable: Counter[str] = Counter()
        """How often samples could not be read, by error message."""
        self._split = f"{data.name}, {split}"
        self._strict, self._quiet = strict, quiet or rank > 0
        self._epochs_begun = 0
        self._next_epoch = 0
        self._order = _Order(len(samples), batch_size, training, seed, rank, world_size, repeats)
        with _without_advice():
            self._loader = DataLoader(
                _Reader(samples, replace=training),
                batch_sampler=self._order,
                collate_fn=_as_it_is,
                num_workers=workers,
                pin_memory=pin_memory,
                persistent_workers=workers > 0,
                worker_init_fn=partial(_begin_worker, _socket_folder()) if workers else None,
                generator=torch.Generator().manual_seed(seed),  # else every epoch draws from the global one
            )

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Batch]:
        """The next epoch, starting at epoch 0: another order each time in training, the same one in evaluation."""
        self._next_epoch += 1
        return self.epoch(self._next_epoch - 1)

    def epoch(self, number: int, first_batch: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, starting at `first_batch`: a resumed run does not read again what it has seen.

        One epoch at a time: beginning another ends this one. In evaluation a batch without a readable sample is left
        out, so several processes may see different numbers of batches.
        """
        self._epochs_begun += 1
        this = self._epochs_begun
        self._order.epoch, self._order.first_batch = number, first_batch
        for batch in self._batches():
            self._count(batch)
            if len(batch.labels):
                yield batch
            if this != self._epochs_begun:
                raise RuntimeError("Another epoch of this loader was begun before this one ended.")

    def _batches(self) -> Iterator[Batch]:
        with _without_advice():
            batches = iter(self._loader)
        try:
            yield from batches
        except RuntimeError as error:
            if not _is_of_pytorchs_loader(error):
                raise
            raise OSError(
                f"A process that reads ahead for {self._split} was killed, often for lack of memory; take fewer "
                "workers."
            ) from None

    def _count(self, batch: Batch) -> None:
        if batch.gave_up:
            raise ValueError(f"{_PATIENCE} samples in a row cannot be read; the last: {batch.reasons[-1]}")
        for reason in batch.reasons:
            if self._strict:
                raise ValueError(reason)
            if not self.unreadable and not self._quiet:
                logger.warning("%s Going on without it; more such samples of %s are counted.", reason, self._split)
            self.unreadable[reason] += 1


def _is_of_pytorchs_loader(error: RuntimeError) -> bool:
    """Whether the loader itself raised it, as it does where a worker is gone; errors of a worker are passed on."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("torch.utils.data.")


class SplitDataset(Dataset[tuple[Any, int]]):
    """A split for PyTorch's own DataLoader: (sample, label), the sample a tensor as stored, or what `transform` makes.

    Collate samples to a batch and hand it to `DataSet.prepare`, which scales, normalises and puts time first.
    """

    def __init__(self, data: DataSet, split: str, transform: Callable[[Tensor], Any] | None = None) -> None:
        self.samples, self.transform = data.split(split), transform

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if not 0 <= index < len(self):
            raise IndexError(f"The split has {len(self)} samples, got index {index}.")
        sample = torch.tensor(self.samples[index])
        return sample if self.transform is None else self.transform(sample), int(self.samples.labels[index])


@dataclass
class _Order:
    """Indices of one process's batches; `epoch` and `first_batch` are set before each pass."""

    count: int
    batch_size: int
    training: bool
    seed: int
    rank: int
    world_size: int
    repeats: int = 1
    epoch: int = 0
    first_batch: int = 0

    def __len__(self) -> int:
        mine = len(range(self.rank, self.count, self.world_size))
        return self.count // (self.batch_size * self.world_size) if self.training else -(-mine // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(self.count)
        if self.training:
            np.random.default_rng([self.seed, self.epoch]).shuffle(order)
            order = order[np.arange(self.count) // self.repeats]
        mine = order[self.rank :: self.world_size]
        for number in range(self.first_batch, len(self)):
            yield mine[number * self.batch_size : (number + 1) * self.batch_size].tolist()


@dataclass
class _Reader(Dataset[Batch]):
    """A split, read batch by batch, in this process or in a worker."""

    samples: Samples
    replace: bool

    def __len__(self) -> int:
        return len(self.samples)

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        """Torch's name for reading many at once."""
        reasons: list[str] = []
        found = [place for index in indices if (place := self._read(index, reasons)) is not None]
        if not found or (self.replace and len(found) < len(indices)):
            nothing = torch.empty(0, dtype=torch.int64)
            return Batch(nothing, nothing, nothing, tuple(reasons), gave_up=self.replace)
        places, samples = zip(*found, strict=True)
        labels = torch.from_numpy(self.samples.labels[list(places)])
        return Batch(torch.from_numpy(np.stack(samples)), labels, torch.tensor(places), tuple(reasons))

    def _read(self, index: int, reasons: list[str]) -> tuple[int, np.ndarray] | None:
        """The sample and its index; where it cannot be read, in training the next one that can."""
        for candidate in range(index, index + (_PATIENCE if self.replace else 1)):
            place = candidate % len(self.samples)
            try:
                sample = self.samples[place]
                if sample.dtype.kind == "f" and not np.isfinite(sample).all():
                    raise ValueError(f"Sample {place} holds NaN or infinity.")
                return place, sample
            except (ValueError, OSError) as error:
                reasons.append(str(error))
        return None


@contextmanager
def _without_advice() -> Iterator[None]:
    """The number of workers is the caller's choice, even where PyTorch would take fewer, as on a single core."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create")
        yield


def _socket_folder() -> str:
    """Where workers put the sockets through which they hand over batches: the temporary folder, if its path is short.

    In a longer one, Python would fail in a thread of the worker, and this process would wait for ever.
    """
    folder = tempfile.gettempdir()
    for candidate in (folder, *_OTHER_SOCKET_FOLDERS):
        if len(os.fsencode(candidate)) <= _LONGEST_SOCKET_FOLDER and os.access(candidate, os.W_OK | os.X_OK):
            return candidate
    raise OSError(
        f"Workers need a temporary folder with a path of at most {_LONGEST_SOCKET_FOLDER} bytes for their sockets, got "
        f"{shown(folder)}; set TMPDIR to a shorter one, or take 0 workers."
    )


def _begin_worker(socket_folder: str, _: int) -> None:
    """Ctrl-C reaches every process of a terminal; the parent ends its workers when it has finished its step."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = socket_folder


def _as_it_is(batch: Any) -> Batch:
    """Batches come whole from `_Reader`; torch's own collate_fn would take them apart."""
    return batch
