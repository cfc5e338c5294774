"""What leaving early costs and saves: accuracy against mean steps, milliseconds and energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spikformer.visualise.style import COLOURS, INK, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spikformer.analysis.anytime import AnytimeReport, MeasuredExit

_EXIT: dict[str, Any] = {"marker": "o", "markersize": 4.5, "linewidth": 1.4}
_CHOSEN: dict[str, Any] = {"marker": "o", "markersize": 11, "fillstyle": "none", "markeredgewidth": 2.0}
_ALL_STEPS: dict[str, Any] = {"marker": "D", "markersize": 7, "fillstyle": "none", "markeredgewidth": 1.6}
_NONE: dict[str, Any] = {"linestyle": "none"}


@dataclass(frozen=True)
class _Series:
    """A cost, and how its line is drawn."""

    label: str
    colour: str
    cost: Callable[[MeasuredExit], float]


@house_style()
def anytime_figure(report: AnytimeReport, *, title: str = "") -> Figure:
    """Three panels that share their accuracy: left and above is better. A dashed line is the accuracy of all steps."""
    energy, unit = _energy_unit(report)
    steps = [_Series("confidence", INK, lambda each: each.point.mean_steps)]
    times = [
        _Series("batch 1", COLOURS[0], lambda each: each.single_ms),
        _Series(f"batch {report.batch_size}", COLOURS[1], lambda each: each.batch_ms),
    ]
    energies = [
        _Series("as the paper counts", COLOURS[2], lambda each: energy * each.paper_energy_mj),
        _Series("strict", COLOURS[3], lambda each: energy * each.strict_energy_mj),
    ]
    panels = {"mean time steps": steps, "engine, ms a sample": times, f"energy, {unit} a sample": energies}
    figure = new_figure(12, 4.4, f"Accuracy by mean time steps, by engine time and by energy. {title}".strip())
    for axes, (label, series) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        for each in series:
            _draw(axes, report, each)
        axes.axhline(100 * report.all_steps.point.accuracy, color=INK, linestyle="--", linewidth=0.9, alpha=0.6)
        axes.set_xlabel(label)
        axes.set_xlim(left=0)
        axes.grid()
        if len(series) > 1:
            axes.legend(loc="lower right")
    curve = [(point.mean_steps, 100 * point.accuracy) for point in report.curve]
    figure.axes[0].plot(*zip(*curve, strict=True), color=INK, linewidth=1.4, zorder=2)
    figure.axes[0].set_ylabel("accuracy on the test split, %")
    figure.suptitle(title)
    _add_legend(figure, report)
    return figure


def _energy_unit(report: AnytimeReport) -> tuple[float, str]:
    """A small network's energy would vanish in millijoules."""
    return (1.0, "mJ") if report.all_steps.strict_energy_mj >= 1 else (1e3, "µJ")


def _draw(axes: Axes, report: AnytimeReport, series: _Series) -> None:
    measured = [(series.cost(each), 100 * each.point.accuracy) for each in report.exits]
    line = _NONE if series.colour == INK else {}  # the curve over all confidences joins them instead
    axes.plot(*zip(*measured, strict=True), color=series.colour, label=series.label, zorder=3, **(_EXIT | line))
    for exit_, style in ((report.all_steps, _ALL_STEPS), (report.chosen, _CHOSEN)):
        point = [series.cost(exit_)], [100 * exit_.point.accuracy]
        axes.plot(*point, color=series.colour, zorder=4, **style, **_NONE)


def _add_legend(figure: Figure, report: AnytimeReport) -> None:
    from matplotlib.lines import Line2D

    time_steps = len(report.all_steps.point.leaving)
    chosen = "all steps" if report.confidence is None else f"confidence {report.confidence:g}"
    entries = {
        "confidences " + ", ".join(f"{each.point.confidence:g}" for each in report.exits): _EXIT | _NONE,
        f"chosen on validation data: {chosen}": _CHOSEN | _NONE,
        f"all {time_steps} steps at once": _ALL_STEPS | _NONE,
        "accuracy of all steps": {"linestyle": "--", "linewidth": 0.9},
    }
    handles = [Line2D([], [], color=INK, **style) for style in entries.values()]
    figure.legend(handles, list(entries), loc="outside lower center", ncols=2)
