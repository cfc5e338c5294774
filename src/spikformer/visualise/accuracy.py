"""How accurate networks are: curves epoch by epoch, the confusion matrix, and the variants of an ablation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spikformer.errors import FieldError
from spikformer.visualise.style import (
    COLOURS,
    INK,
    SEQUENTIAL,
    house_style,
    new_figure,
    readable_on,
    save_figure,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spikformer.analysis.ablation import Line


Rows = Sequence[Mapping[str, float]]

_DASHES = ("-", "--", ":", "-.")  # once all colours are taken
_SPLITS: dict[str, dict[str, Any]] = {
    "train": {"linewidth": 0.9},
    "validation": {"linewidth": 2.2},
}
# One epoch makes no line.
_POINTS = {"train": {"marker": "o", "fillstyle": "none"}, "validation": {"marker": "o", "fillstyle": "full"}}
_NAMED_CLASSES = 40  # classes; beyond, names would be too small to read
_NUMBERED_CLASSES = 20


def draw_curves(runs: Mapping[str, Rows], path: Path) -> None:
    """`curves_figure` as a file."""
    save_figure(curves_figure(runs), path)


@house_style()
def curves_figure(runs: Mapping[str, Rows]) -> Figure:
    """Rows of metrics by run: training thin, validation thick; a run needs at least one row."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    if not runs:
        raise FieldError("runs", "There is no run to draw; give at least one.")
    for name, rows in runs.items():
        if not rows:
            raise FieldError("runs", f"The run {name} has no finished epoch to draw.")
    figure = new_figure(10, 4.4, "Loss and accuracy by epoch.")
    for axes, quantity in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for index, rows in enumerate(runs.values()):
            _plot(axes, rows, quantity, index)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
        axes.set_title(quantity)
        axes.grid()
        if quantity == "accuracy":
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    _add_legend(figure, runs)
    return figure


def _plot(axes: Axes, rows: Rows, quantity: str, index: int) -> None:
    for split, style in _SPLITS.items():
        key = f"{split}_{quantity}"
        points = [(row["epoch"], row[key]) for row in rows if key in row]
        if points:
            style = style | (_POINTS[split] if len(points) == 1 else {})
            axes.plot(*zip(*points, strict=True), **_colour(index), **style)


def _colour(index: int) -> dict[str, Any]:
    dashes = _DASHES[index // len(COLOURS) % len(_DASHES)]
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": dashes}


def _add_legend(figure: Figure, runs: Mapping[str, Rows]) -> None:
    """Below the curves: a colour for each of several runs, a width for each split."""
    from matplotlib.lines import Line2D

    entries: list[tuple[str, dict[str, Any]]] = []
    if len(runs) > 1:
        entries = [(shortened(name), {"linewidth": 2.0, **_colour(index)}) for index, name in enumerate(runs)]
    points = all(len(rows) == 1 for rows in runs.values())
    for split, style in _SPLITS.items():
        if any(f"{split}_loss" in row for rows in runs.values() for row in rows):
            colour = _colour(0) if len(runs) == 1 else {"color": INK}
            entries.append((split, {**style, **colour, **(_POINTS[split] if points else {})}))
    handles, labels = [Line2D([], [], **style) for _, style in entries], [label for label, _ in entries]
    columns = max(1, min(len(labels), 100 // (max(map(len, labels)) + 7)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def draw_confusion(confusion: Sequence[Sequence[int]], class_names: Sequence[str], path: Path) -> None:
    """`confusion_figure` as a file."""
    save_figure(confusion_figure(confusion, class_names), path)


@house_style()
def confusion_figure(confusion: Sequence[Sequence[int]], class_names: Sequence[str]) -> Figure:
    """Rows are true classes, columns answers; shade is the share of a row, numbers are samples."""
    from matplotlib import colormaps

    counts = np.array(confusion)
    if counts.shape != (len(class_names), len(class_names)):
        raise FieldError(
            "confusion", f"A confusion of {len(class_names)} classes has as many rows and columns, got {counts.shape}."
        )
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(4.5 + 0.35 * len(class_names), 14.0)
    figure = new_figure(side, side, "Confusion matrix: which class is classified as which.")
    axes = figure.subplots()
    axes.imshow(shares, vmin=0, vmax=1)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("answer")
    axes.set_ylabel("class")
    if len(class_names) <= _NAMED_CLASSES:
        places, names = range(len(class_names)), [shortened(name) for name in class_names]
        axes.set_xticks(places, names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(places, names)
    if len(class_names) <= _NUMBERED_CLASSES:
        for row, column in np.argwhere(counts):
            ink = readable_on(colormaps[SEQUENTIAL](shares[row, column]))
            axes.text(column, row, str(counts[row, column]), ha="center", va="center", color=ink, fontsize=8)
    return figure


_OURS, _PAPER = COLOURS[:2]
_SEED: dict[str, Any] = {"color": _OURS, "marker": "o", "markersize": 6, "markeredgewidth": 0, "alpha": 0.45}
_MEAN: dict[str, Any] = {"color": _OURS, "marker": "|", "markersize": 15, "markeredgewidth": 2.2}
_PRINTED: dict[str, Any] = {"color": _PAPER, "marker": "D", "markersize": 8, "fillstyle": "none"}


@house_style()
def ablation_figure(lines: Sequence[Line], accuracy: str, *, title: str = "", label: str = "accuracy, %") -> Figure:
    """A row for each variant, from top to bottom; `accuracy` names the figure of a cell that is drawn, a share."""
    if not lines:
        raise FieldError("lines", "There is no variant to draw; give at least one.")
    description = f"Accuracy of {len(lines)} variants, every seed a dot. {title}".strip()
    figure = new_figure(8, 1.7 + 0.42 * len(lines), description)
    axes = figure.subplots()
    for row, line in enumerate(lines):
        _draw_line(axes, row, line, accuracy)
    axes.set_yticks(range(len(lines)), [shortened(line.variant.name) for line in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xlabel(label)
    axes.set_title(title)
    axes.grid(axis="x")
    if not axes.lines:
        axes.set_xlim(0, 100)
    _add_ablation_legend(figure, lines, accuracy)
    return figure


def _draw_line(axes: Axes, row: int, line: Line, accuracy: str) -> None:
    paper = line.variant.paper
    if paper is not None and paper.accuracy_percent is not None:
        axes.plot([paper.accuracy_percent], [row], linestyle="none", zorder=2, **_PRINTED)
    found = line.figure(accuracy)
    if found is not None:
        percents = [100 * value for value in found.values]
        axes.plot(percents, [row] * len(percents), linestyle="none", zorder=3, **_SEED)
        if found.std is not None:
            mean, std = 100 * found.mean, 100 * found.std
            axes.errorbar([mean], [row], xerr=[std], ecolor=_OURS, elinewidth=1.6, capsize=0, zorder=4, **_MEAN)
    if remark := _remark(line):
        # Beside the axes, where no dot can be.
        axes.annotate(remark, (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize=9)


def _remark(line: Line) -> str:
    """Cells without a dot, as the paper marks its own that did not converge."""
    diverged, failed = line.num_cells("diverged"), line.num_cells("failed")
    remarks = [f"{diverged} of {len(line.cells)} ✗"] if diverged else []
    remarks += [f"{failed} failed"] if failed else []
    if line.variant.paper is not None and line.variant.paper.accuracy_percent is None:
        remarks.append("paper ✗")
    return ", ".join(remarks)


def _add_ablation_legend(figure: Figure, lines: Sequence[Line], accuracy: str) -> None:
    from matplotlib.lines import Line2D

    entries: list[tuple[str, dict[str, Any]]] = []
    found = [spread for line in lines if (spread := line.figure(accuracy))]
    if found:
        entries.append(("one seed", _SEED | {"linestyle": "none"}))
    if any(spread.std is not None for spread in found):
        entries.append(("mean ± standard deviation", _MEAN))
    models = dict.fromkeys(line.variant.paper.model for line in lines if line.variant.paper is not None)
    if models:
        name = next(iter(models)) if len(models) == 1 else "each size"
        entries.append((f"paper, {name}", _PRINTED | {"linestyle": "none"}))
    if any(line.num_cells("diverged") or "✗" in _remark(line) for line in lines):
        entries.append(("✗ did not converge", {"linestyle": "none"}))
    if entries:
        handles = [Line2D([], [], **style) for _, style in entries]
        labels = [label for label, _ in entries]
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
