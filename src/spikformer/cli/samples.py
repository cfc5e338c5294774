"""What measuring verbs share: trained weights, the data they know, batches of it, a bar, and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spikformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from torch import Tensor

    from spikformer.data import DataSet
    from spikformer.models import SpikingNetwork


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Options of a verb that runs trained weights over their data."""

    data: Path | None = None
    """Folder or archive with the data set's files; not needed for embedded sets."""
    split: Literal["train", "validation", "test"] = "test"
    """Which part of the data."""
    max_samples: int = 512
    """How many samples at most, taken from all over the split."""
    batch_size: int = 32
    """Samples at a time."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to compute; auto takes a GPU if there is one."""


def open_measured(weights: Path, options: Measured) -> tuple[SpikingNetwork, DataSet]:
    """The model, on its device, and its data."""
    from spikformer.cli.weights import load_trained, open_data
    from spikformer.training.devices import choose_device

    for name in ("max_samples", "batch_size"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}.")
    device = choose_device(options.accelerator)
    model = load_trained(weights)
    data = open_data(model, options.data)
    data.split(options.split)
    return model.to(device), data


def batches(model: SpikingNetwork, data: DataSet, split: str, max_samples: int, batch_size: int) -> Iterator[Tensor]:
    """See `prepared_batches`; on the model's device, in its dtype."""
    weight = model.like
    for inputs in prepared_batches(data, split, max_samples, batch_size):
        yield inputs.to(weight.device, weight.dtype)


def prepared_batches(data: DataSet, split: str, max_samples: int, batch_size: int) -> Iterator[Tensor]:
    """Samples from all over a split, always the same, as models want them; what cannot be read is left out."""
    import numpy as np

    samples = data.split(split)
    count = min(max_samples, len(samples))
    places = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    for start in range(0, count, batch_size):
        read = []
        for place in places[start : start + batch_size]:
            try:
                read.append(samples[int(place)])
            except (ValueError, OSError):
                continue
        if read:
            yield data.prepare(np.stack(read))


@contextmanager
def bar(what: str, total: int, *, enabled: bool) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; call what it yields with the number of samples done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Terminal(stderr=True)
    live = console.is_terminal and enabled
    with Progress(*columns, console=console, transient=True, disable=not live) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)
