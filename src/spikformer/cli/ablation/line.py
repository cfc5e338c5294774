"""An ablation while it goes on: which cells run, how many are done, how long it may take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from spikformer.cli.ablation.cells import Cell
from spikformer.cli.ablation.pool import Ended
from spikformer.cli.terminal import Terminal


class CellsLine:
    """One line that is drawn over itself; where nothing can be drawn over, a line for each cell that ends."""

    def __init__(self, done: int, total: int, jobs: int, *, enabled: bool) -> None:
        self._console = Terminal(stderr=True)
        self._enabled, self._jobs = enabled, jobs
        self._done, self._total = done, total
        self._seconds: list[float] = []
        self._began: dict[Cell, float] = {}
        columns = (
            TextColumn("Ablation"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[running]}  {task.fields[left]}"),
        )
        live = enabled and self._console.is_terminal
        self._bar = Progress(*columns, console=self._console, transient=True, disable=not live)
        self._task = self._bar.add_task("", total=total, completed=done, running="", left="")

    def __enter__(self) -> CellsLine:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, running: Sequence[Cell]) -> None:
        """What runs now, and the time left by the mean of those that have ended."""
        now = time.monotonic()
        for cell in running:
            self._began.setdefault(cell, now)
        left = ""
        if self._seconds:
            mean = sum(self._seconds) / len(self._seconds)
            spent = sum(min(mean, now - self._began[cell]) for cell in running)
            left = f"{_duration(((self._total - self._done) * mean - spent) / self._jobs)} left"
        self._bar.update(self._task, completed=self._done, running="; ".join(map(str, running)), left=left)

    def tell(self, ended: Ended) -> None:
        """A cell that ended, and how."""
        if ended.cell in self._began:
            self._seconds.append(time.monotonic() - self._began[ended.cell])
        self._done += 1
        if not self._enabled:
            return
        sentence = f"failed: {ended.sentence}"
        if ended.result is not None:
            shares = [value for name, value in ended.result.figures.items() if name.startswith("last_")]
            sentence = f"{shares[0]:.2%}" if shares else "did not converge"
        self._console.print(
            f"{ended.cell}: {sentence} ({self._done} of {self._total})", highlight=False, soft_wrap=True, markup=False
        )


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(max(0.0, seconds)), 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
