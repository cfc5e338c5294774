"""What accuracy costs: the variants of an ablation by energy and by the engine's time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from spikformer.errors import FieldError
from spikformer.visualise.style import COLOURS, INK, house_style, new_figure, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spikformer.analysis.ablation import Line

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


class _Cost(NamedTuple):
    """A figure of cells, and the axis it is drawn on."""

    name: str
    label: str
    scale: float = 1.0


_ENGINE = _Cost("engine_ms", "engine, one sample on one thread, ms")


@house_style()
def cost_figure(lines: Sequence[Line], accuracy: str, *, title: str = "", label: str = "accuracy, %") -> Figure:
    """A point for each variant: left and above is better. `accuracy` names the figure of a cell that is drawn, a share.

    Bars are standard deviations over seeds. Variants without a cost, or without any accuracy, have no point in that
    panel; the legend marks them.
    """
    if not lines:
        raise FieldError("lines", "There is no variant to draw; give at least one.")
    costs = (_energy(lines), _ENGINE)
    figure = new_figure(10, 4.6, f"Accuracy of {len(lines)} variants by energy and by engine time. {title}".strip())
    for axes, cost in zip(figure.subplots(1, 2, sharey=True), costs, strict=True):
        for index, line in enumerate(lines):
            _draw_point(axes, line, accuracy, cost, _style(index))
        axes.set_xlabel(cost.label)
        axes.set_xlim(left=0)
        axes.grid()
    figure.axes[0].set_ylabel(label)
    figure.suptitle(title)
    _add_legend(figure, lines, [accuracy, *(cost.name for cost in costs)])
    return figure


def _energy(lines: Sequence[Line]) -> _Cost:
    """In the unit of the table: a small network's would vanish in millijoules."""
    found = [spread.mean for line in lines if (spread := line.figure("energy_mj"))]
    if max(found, default=0.0) >= 1:
        return _Cost("energy_mj", "energy as the paper counts, mJ")
    return _Cost("energy_mj", "energy as the paper counts, µJ", 1e3)


def _style(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "marker": _MARKERS[index // len(COLOURS) % len(_MARKERS)]}


def _draw_point(axes: Axes, line: Line, accuracy: str, cost: _Cost, style: dict[str, Any]) -> None:
    right, spent = line.figure(accuracy), line.figure(cost.name)
    if right is None or spent is None:
        return
    spread: dict[str, Any] = {
        "xerr": None if spent.std is None else [cost.scale * spent.std],
        "yerr": None if right.std is None else [100 * right.std],
    }
    axes.errorbar([cost.scale * spent.mean], [100 * right.mean], **spread, **style, markersize=8, elinewidth=1.2)


def _add_legend(figure: Figure, lines: Sequence[Line], figures: Sequence[str]) -> None:
    """Below the panels; a variant that lacks a point somewhere is named with a dash."""
    from matplotlib.lines import Line2D

    handles, labels = [], []
    for index, line in enumerate(lines):
        complete = all(line.figure(name) for name in figures)
        style = _style(index) if any(map(line.figure, figures[1:])) and line.figure(figures[0]) else {"color": INK}
        handles.append(Line2D([], [], linestyle="none", markersize=8, **style))
        labels.append(shortened(line.variant.name) + ("" if complete else " –"))
    columns = max(1, min(len(labels), 100 // (max(map(len, labels)) + 7)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
