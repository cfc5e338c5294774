"""A training run while it goes on: one line that is redrawn, or a line for each epoch in a log."""

from __future__ import annotations

from types import TracebackType

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from spikformer.cli.terminal import Terminal
from spikformer.io import resident_bytes
from spikformer.runs.progress import Event, Started, describe_event
from spikformer.training import Epoch, Iteration


class LiveLine:
    """Epoch, loss, accuracy, samples a second, time to go and memory, in one line; on stderr."""

    def __init__(self) -> None:
        self._console = Terminal(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
        )
        live = self._console.is_terminal
        self._bars = Progress(*columns, console=self._console, transient=True, disable=not live)
        self._task = self._bars.add_task("Training", total=None, figures="")
        self._total_epochs = 0
        self._device = "cpu"

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, event: Event) -> None:
        """Draw an iteration; write everything else down, but epochs only where nothing can be redrawn."""
        if isinstance(event, Iteration):
            figures = (
                f"loss {event.mean_loss:.3f}  accuracy {event.mean_accuracy:.1%}  "
                f"{event.samples_per_second:.0f} samples/s  {_memory(self._device)}"
            )
            title = f"Epoch {event.epoch} of {self._total_epochs}"
            self._bars.update(self._task, completed=event.number, description=title, figures=figures)
        elif not isinstance(event, Epoch) or not self._console.is_terminal:
            for line in describe_event(event):
                self._console.print(line, highlight=False, soft_wrap=True, markup=False)
        if isinstance(event, Started):
            self._total_epochs, self._device = event.total_epochs, event.device
            total = event.total_epochs * event.iterations_per_epoch
            self._bars.update(self._task, total=total, completed=event.iteration)
            self._bars.start()


def _memory(device: str) -> str:
    used = torch.cuda.max_memory_allocated() if device == "cuda" else resident_bytes()
    return f"{used / 1e9:.1f} GB"
