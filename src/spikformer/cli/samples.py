"""Options that measuring verbs share, and their progress bar."""

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
    """Which split of the data."""
    max_samples: int = 512
    """How many samples at most, taken from all over the split."""
    batch_size: int = 32
    """Samples at a time."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to compute; auto uses a GPU if there is one."""

    def open(self, weights: Path) -> tuple[SpikingNetwork, DataSet]:
        """The model, on its device, and its data."""
        from spikformer.runs.measure import open_measured

        for name in ("max_samples", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}.")
        model, data = open_measured(weights, self.data, self.accelerator)
        data.split(self.split)
        return model, data

    def batches(self, model: SpikingNetwork, data: DataSet) -> Iterator[Tensor]:
        from spikformer.runs.measure import batches

        return batches(model, data, self.split, self.max_samples, self.batch_size)


@contextmanager
def bar(what: str, total: int, *, enabled: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; call what it yields with the number of samples done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Terminal(stderr=True)
    live = console.is_terminal and enabled
    with Progress(*columns, console=console, transient=True, disable=not live) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)
