"""A training run while it goes on: one live line, and a calm answer to Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from spikformer.cli.terminal import Terminal
from spikformer.memory import resident_bytes
from spikformer.training import Epoch, Step, Trainer

_LOGGED = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "samples_per_second")


class LiveLine:
    """Epoch, loss, accuracy, samples a second, time to go and memory, in one line that is drawn over itself."""

    def __init__(self, trainer: Trainer, *, enabled: bool) -> None:
        self._trainer = trainer
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
        )
        self._console = Terminal(stderr=True)
        self._enabled = enabled
        live = enabled and self._console.is_terminal
        self._bars = Progress(*columns, console=self._console, transient=True, disable=not live)
        total = trainer.recipe.total_epochs * trainer.steps_per_epoch
        self._task = self._bars.add_task("Training", total=total, completed=trainer.progress.step, figures="")

    def __enter__(self) -> LiveLine:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, event: Step | Epoch) -> None:
        """Draw a step; write a finished epoch down where nothing can be drawn over, in a log."""
        progress = self._trainer.progress
        if isinstance(event, Epoch) and self._enabled and not self._console.is_terminal:
            shown = ", ".join(f"{name} {event.metrics[name]:.4f}" for name in _LOGGED if name in event.metrics)
            self._console.print(f"epoch {event.number}: {shown}", highlight=False, soft_wrap=True)
        if isinstance(event, Step):
            accuracy = progress.num_correct / max(progress.num_samples, 1)
            figures = (
                f"loss {progress.loss_sum / max(progress.num_samples, 1):.3f}  accuracy {accuracy:.1%}  "
                f"{event.samples_per_second:.0f} samples/s  {_memory(self._trainer.fabric.device)}"
            )
            title = f"Epoch {event.epoch + 1} of {self._trainer.recipe.total_epochs}"
            self._bars.update(self._task, completed=progress.step, description=title, figures=figures)


def _memory(device: torch.device) -> str:
    used = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else resident_bytes()
    return f"{used / 1e9:.1f} GB"


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Ctrl-C, SIGTERM and a terminal that closes end training after the present step; a second one ends it at once.

    Under nohup, which ignores SIGHUP, a run outlives its terminal.
    """
    asked = False

    def ask(number: int, _: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, previous[number])

    numbers: list[int] = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield lambda: asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
