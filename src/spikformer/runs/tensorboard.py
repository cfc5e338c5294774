"""Metrics for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from spikformer.data.dataset import SPLITS


class Board:
    """A log of scalars by epoch. A resumed one forgets what it had beyond the epoch it resumes from."""

    def __init__(self, folder: Path, epoch: int, *, enabled: bool) -> None:
        self._writer = None
        if enabled:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=epoch + 1)

    def __enter__(self) -> Board:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, metrics: dict[str, float]) -> None:
        if self._writer is not None:
            for name, value in metrics.items():
                if name != "epoch":
                    self._writer.add_scalar(_tag(name), value, int(metrics["epoch"]))
            self._writer.flush()


def _tag(name: str) -> str:
    """Quantities of a split go together, under its name."""
    split, _, quantity = name.partition("_")
    return f"{split}/{quantity}" if split in SPLITS else name
