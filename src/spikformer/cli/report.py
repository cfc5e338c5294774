"""Write one HTML page about a run, or several: accuracy, curves, firing, energy, what it looks at, configuration.

Example: spikformer report runs/spikformer_tiny_digits
Example: spikformer report runs/first runs/second --output comparison.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from spikformer.cli.console import bar, check_least, say
from spikformer.validation import Accelerator, Split

if TYPE_CHECKING:
    from spikformer.visualise.report import ReportedRun


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
    from spikformer.io import check_html_path
    from spikformer.page import write_page
    from spikformer.runs.report import PAGE, open_runs, report_runs
    from spikformer.visualise.report.wording import progress, run_summary, warning

    check_least(options, samples=0, max_samples=1, batch_size=1)
    # Everything that can be wrong is found before anything takes long.
    opened = open_runs(options.runs, options.data, options.split)
    output = options.output or (options.runs[0] / "report.html" if len(options.runs) == 1 else Path("report.html"))
    check_html_path(output, "report.html")
    if options.page:
        for path in options.runs:
            write_page(path, path / PAGE)
    total = sum(each.num_passes(options.max_samples) for each in opened)
    with bar("Measuring", total, enabled=not options.json) as advance:
        measured = report_runs(
            opened,
            output,
            num_shown=options.samples,
            max_samples=options.max_samples,
            batch_size=options.batch_size,
            accelerator=options.accelerator,
            on_samples=advance,
        )
    if options.json:
        print(json.dumps({"report": str(output), "runs": [_figures(each) for each in measured]}))
        return 0
    for each in measured:
        for line in filter(None, (run_summary(each), warning(each), progress(each))):
            say(f"{each.name}: {line}")
    say(f"report: {output}")
    return 0


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
