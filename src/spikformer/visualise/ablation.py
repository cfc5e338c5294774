"""An ablation at a glance: every seed a dot, their mean and deviation, and what the paper found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spikformer.analysis.ablation import Line
from spikformer.visualise.style import COLOURS, house_style, new_figure, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OURS, _PAPER = COLOURS[:2]
_SEED: dict[str, Any] = {"color": _OURS, "marker": "o", "markersize": 6, "markeredgewidth": 0, "alpha": 0.45}
_MEAN: dict[str, Any] = {"color": _OURS, "marker": "|", "markersize": 15, "markeredgewidth": 2.2}
_PRINTED: dict[str, Any] = {"color": _PAPER, "marker": "D", "markersize": 8, "fillstyle": "none"}


@house_style()
def ablation_figure(lines: Sequence[Line], accuracy: str, *, title: str = "", label: str = "accuracy, %") -> Figure:
    """A row for each variant, from top to bottom; `accuracy` names the figure of a cell that is drawn, a share."""
    if not lines:
        raise ValueError("There is no variant to draw; give at least one.")
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
    _add_legend(figure, lines, accuracy)
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
    diverged, failed = line.count("diverged"), line.count("failed")
    remarks = [f"{diverged} of {len(line.cells)} ✗"] if diverged else []
    remarks += [f"{failed} failed"] if failed else []
    if line.variant.paper is not None and line.variant.paper.accuracy_percent is None:
        remarks.append("paper ✗")
    return ", ".join(remarks)


def _add_legend(figure: Figure, lines: Sequence[Line], accuracy: str) -> None:
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
    if any(line.count("diverged") or "✗" in _remark(line) for line in lines):
        entries.append(("✗ did not converge", {"linestyle": "none"}))
    if entries:
        handles = [Line2D([], [], **style) for _, style in entries]
        labels = [label for label, _ in entries]
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
