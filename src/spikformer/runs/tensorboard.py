"""Metrics for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from spikformer.data.dataset import SPLITS
from spikformer.training.progress import Iteration, Progress


class Board:
    """Scalars by epoch, and by iteration in the run `iterations` beside. A resumed log drops what lies ahead."""

    def __init__(self, folder: Path, progress: Progress, *, enabled: bool) -> None:
        self._writer = self._iterations = None
        if enabled:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=progress.epoch + 1)
            self._iterations = SummaryWriter(str(folder / "iterations"), purge_step=progress.iteration + 1)

    def __enter__(self) -> Board:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in (self._writer, self._iterations):
            if writer is not None:
                writer.close()

    def add_iteration(self, iteration: Iteration) -> None:
        if self._iterations is not None:
            for name in ("loss", "learning_rate", "samples_per_second"):
                self._iterations.add_scalar(f"iteration/{name}", getattr(iteration, name), iteration.number)

    def add(self, metrics: dict[str, float]) -> None:
        """A row of metrics, of an epoch."""
        if self._writer is not None:
            for name, value in metrics.items():
                if name != "epoch":
                    self._writer.add_scalar(_tag(name), value, int(metrics["epoch"]))
            self._writer.flush()


def _tag(name: str) -> str:
    """Quantities of a split go together, under its name."""
    split, _, quantity = name.partition("_")
    return f"{split}/{quantity}" if split in SPLITS else name
