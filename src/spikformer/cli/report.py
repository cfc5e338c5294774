"""Write one HTML page about a run, or several: accuracy, curves, firing, energy, what it looks at, configuration.

Example: spikformer report runs/spikformer_tiny_digits
Example: spikformer report runs/first runs/second --output comparison.html
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import tyro

from spikformer.cli.console import bar, say
from spikformer.validation import Accelerator, Split

if TYPE_CHECKING:
    from spikformer.visualise.report import ReportedRun

_PAGE = "page.html"


@dataclass(frozen=True)
class Options:
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN…")]
    """Folders that train wrote; one that is still in training is fine."""
    data: Path | None = None
    """Folder or archive with the data set's files; by default where each run found its own."""
    output: Path | None = None
    """The page; RUN/report.html by default, report.html for several runs."""
    split: Split = "test"
    """Which split of the data to measure on."""
    samples: int = 6
    """Inputs whose attention is shown, of as many classes as can be; 0 shows none."""
    max_samples: int = 512
    """Inputs to measure firing and energy on, taken from all over the split."""
    batch_size: int = 128
    """Samples at a time."""
    accelerator: Accelerator = "auto"
    """Where to compute; auto uses a GPU if there is one."""
    page: bool = False
    """Also write RUN/page.html, in which the run's network can be tried. A run that has one is linked to it anyway."""
    json: bool = False
    """Print JSON instead of text."""


def run(options: Options) -> int:
    from spikformer import __version__
    from spikformer.io import check_html_path
    from spikformer.page import write_page
    from spikformer.runs.report import open_run
    from spikformer.training.distributed import choose_device
    from spikformer.visualise.report import Report, write_report
    from spikformer.visualise.report.wording import progress, summary, warning

    _check(options)
    output = options.output or (options.runs[0] / "report.html" if len(options.runs) == 1 else Path("report.html"))
    device = choose_device(options.accelerator)
    # Everything that can be wrong is found before anything takes long.
    opened = [open_run(path, name, options.data, options.split) for path, name in _named(options.runs)]
    check_html_path(output)
    total = sum(each.num_passes(options.max_samples) for each in opened)
    with bar("Measuring", total, enabled=not options.json) as advance:
        measured = [
            each.measure(
                num_shown=options.samples,
                max_samples=options.max_samples,
                batch_size=options.batch_size,
                device=device,
                on_samples=advance,
            )
            for each in opened
        ]
        if options.page:
            for path in options.runs:
                write_page(path, path / _PAGE)
        measured = [
            replace(each, page=_page_link(path, output)) for path, each in zip(options.runs, measured, strict=True)
        ]
        write_report(Report(measured, version=__version__, made=time.strftime("%Y-%m-%d %H:%M")), output)
    if options.json:
        print(json.dumps({"report": str(output), "runs": [_figures(each) for each in measured]}))
        return 0
    for each in measured:
        for line in filter(None, (summary(each), warning(each), progress(each))):
            say(f"{each.name}: {line}")
    say(f"report: {output}")
    return 0


def _page_link(run: Path, output: Path) -> str | None:
    """The address of a run's page, as a link of the report."""
    if not (run / _PAGE).is_file():
        return None
    return quote(Path(os.path.relpath(run / _PAGE, output.parent)).as_posix())


def _check(options: Options) -> None:
    if not options.runs:
        raise ValueError("Name at least one run, a folder that `spikformer train` wrote.")
    for name, value, least in (
        ("samples", options.samples, 0),
        ("max-samples", options.max_samples, 1),
        ("batch-size", options.batch_size, 1),
    ):
        if value < least:
            raise ValueError(f"--{name} must be at least {least}, got {value}.")


def _named(runs: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each run with a name of its own: that of its folder, where two are called alike with as much before it."""
    places = [path.resolve() for path in runs]
    if len(set(places)) < len(places):
        raise ValueError("A run is named twice; name each once.")
    for path, place in zip(runs, places, strict=True):
        lengths = range(1, len(place.parts) + 1)
        tails = (place.parts[-length:] for length in lengths)
        own = next(tail for tail in tails if sum(other.parts[-len(tail) :] == tail for other in places) == 1)
        yield path, "/".join(own)


def _figures(run: ReportedRun) -> dict[str, object]:
    """What the page says of a run, for machines."""
    accuracy = {weights.kind: weights.accuracy for weights in run.weights}
    return {
        "run": run.name,
        "recipe": run.recipe,
        "data": run.data,
        "split": run.split,
        "epochs": len(run.history),
        "finished": run.finished,
        "accuracy": accuracy,
        "energy": run.energy.to_dict(),
        "page": run.page,
    }
