"""The report: runs on one HTML page that needs nothing but itself. It opens from disk, prints, and can be sent.

    write_report(Report(runs=[…], version=…, made=…), Path("report.html"))

`content.py` says what is on it, `drawing.py` draws its figures, `wording.py` writes its text, and
`page.html` and its neighbours lay it out. Names of classes, runs and files come from anywhere: every text is escaped,
and the page's policy forbids scripts and requests besides.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from spikformer.analysis.energy import CONVENTIONS
from spikformer.io import check_html_path, write_atomically
from spikformer.visualise.report import drawing, wording
from spikformer.visualise.report.content import Report, ReportedRun, Sample, Weights

__all__ = [
    "Report",
    "ReportedRun",
    "Sample",
    "Weights",
    "render_report",
    "write_report",
]

# What the templates call.
_FILTERS: tuple[Callable[..., Any], ...] = (
    drawing.layer_title,
    wording.class_bars,
    wording.command,
    wording.configuration,
    wording.confusions,
    wording.large_number,
    wording.differences,
    wording.duration,
    wording.energy,
    wording.extremes,
    wording.layer_unit,
    wording.map_legend,
    wording.order_title,
    wording.overview,
    wording.percent,
    wording.progress,
    wording.setting,
    wording.step_bars,
    wording.run_summary,
    wording.table_energy,
    wording.three_digits,
    wording.times,
    wording.warning,
)
_HERE = Path(__file__).parent


def write_report(content: Report, path: Path) -> None:
    """Write the page atomically."""
    check_html_path(path, "report.html")
    write_atomically(path, render_report(content).encode(errors="replace"))  # a folder's name may be no text


def render_report(content: Report) -> str:
    """The page as text."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {each.__name__: each for each in _FILTERS}
    several = len(content.runs) > 1
    return environment.get_template("page.html").render(
        report=content,
        title=wording.title(content),
        conventions=CONVENTIONS,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        curves=drawing.draw_curves_of(content.runs, "comparison") if several else None,
        drawn=[
            drawing.draw_run(run, f"run-{number}-" if several else "") for number, run in enumerate(content.runs, 1)
        ],
    )
