"""Loss and accuracy of one or several runs, epoch by epoch."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spikformer.disk import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, float]]

# Okabe and Ito: told apart by colour-blind eyes.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("-", "--", ":", "-.")  # once all colours are taken
_SPLITS: dict[str, dict[str, Any]] = {
    "train": {"linewidth": 1.0, "alpha": 0.7},
    "validation": {"linewidth": 2.0, "alpha": 1.0},
}
# One epoch makes no line.
_POINTS = {"train": {"marker": "o", "fillstyle": "none"}, "validation": {"marker": "o", "fillstyle": "full"}}
_LONGEST_NAME = 40


def draw_curves(runs: Mapping[str, Rows], path: Path) -> None:
    """Rows of metrics by run: training thin, validation thick; a run without rows is refused."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    if not runs:
        raise ValueError("There is no run to draw; give at least one.")
    for name, rows in runs.items():
        if not rows:
            raise ValueError(f"The run {name} has no finished epoch to draw.")
    figure = Figure(figsize=(10, 4.4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, quantity in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for index, rows in enumerate(runs.values()):
            _plot(axes, rows, quantity, index)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
        axes.set_title(quantity, loc="left")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if quantity == "accuracy":
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    _add_legend(figure, runs)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.removeprefix(".") or "png")
    write_atomically(path, content.getvalue())


def _plot(axes: Axes, rows: Rows, quantity: str, index: int) -> None:
    for split, style in _SPLITS.items():
        key = f"{split}_{quantity}"
        points = [(row["epoch"], row[key]) for row in rows if key in row]
        if points:
            style = style | (_POINTS[split] if len(points) == 1 else {})
            axes.plot(*zip(*points, strict=True), **_colour(index), **style)


def _colour(index: int) -> dict[str, Any]:
    dashes = _DASHES[index // len(_COLOURS) % len(_DASHES)]
    return {"color": _COLOURS[index % len(_COLOURS)], "linestyle": dashes}


def _add_legend(figure: Figure, runs: Mapping[str, Rows]) -> None:
    """Below the curves: a colour for each of several runs, a width for each split."""
    from matplotlib.lines import Line2D

    entries: list[tuple[str, dict[str, Any]]] = []
    if len(runs) > 1:
        entries = [(_short(name), {"linewidth": 2.0, **_colour(index)}) for index, name in enumerate(runs)]
    points = all(len(rows) == 1 for rows in runs.values())
    for split, style in _SPLITS.items():
        if any(f"{split}_loss" in row for rows in runs.values() for row in rows):
            colour = _colour(0) if len(runs) == 1 else {"color": "#444444"}
            entries.append((split, {**style, **colour, **(_POINTS[split] if points else {})}))
    handles, labels = [Line2D([], [], **style) for _, style in entries], [label for label, _ in entries]
    columns = max(1, min(len(labels), 100 // (max(map(len, labels)) + 7)))
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar in a name is a dollar


def _short(name: str) -> str:
    """A name as a legend can hold it; matplotlib leaves those out that begin with an underscore."""
    half = (_LONGEST_NAME - 1) // 2
    short = name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"
    return f" {short}" if short.startswith("_") else short
