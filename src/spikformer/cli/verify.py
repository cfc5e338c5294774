"""Check this installation, offline: the same numbers as the authors' code, the paper's sizes, and our own promises.

Example: spikformer verify
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import track
from rich.table import Table

from spikformer.cli.terminal import Terminal, print_table

if TYPE_CHECKING:
    from spikformer.analysis.verification import Check


@dataclass(frozen=True)
class Options:
    golden: Path | None = None
    """Folder of golden files to compare with, instead of the ones in the package."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    import torch

    from spikformer.analysis.golden import GOLDEN_FOLDER
    from spikformer.analysis.verification import checks
    from spikformer.neurons import multistep as backend

    logging.getLogger("spikformer").setLevel(logging.ERROR)  # dropped tensors are no news here
    core = backend.describe()
    torch.set_num_threads(1)  # networks this small only wait for a second thread, on a busy machine for long
    started = time.perf_counter()
    pending = list(checks(options.golden or GOLDEN_FOLDER))
    progress = track(pending, "Checking", console=Terminal(stderr=True), transient=True, disable=options.json)
    results = [result for check in progress for result in check()]
    seconds = time.perf_counter() - started
    failed = sum(not result.holds for result in results)
    if options.json:
        report = {"checks": [asdict(result) for result in results], "failed": failed, "seconds": seconds}
        print(json.dumps(report | {"backend": core}))
        return int(failed > 0)
    _print_report(results)
    verdict = f"[bold red]{failed} of {len(results)} checks fail[/]" if failed else f"All {len(results)} checks hold"
    Terminal().print(f"\n{verdict}, in {seconds:.1f} s ({core}).", highlight=False, soft_wrap=True)
    return int(failed > 0)


def _print_report(results: list[Check]) -> None:
    """Checks under the claim they belong to, one line each."""
    console = Terminal(highlight=False)
    for claim in dict.fromkeys(result.claim for result in results):
        console.print(f"\n[bold]{claim}[/]")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for result in results:
            if result.claim == claim:
                table.add_row("  holds" if result.holds else "  [bold red]FAILS[/]", result.subject, result.seen)
        print_table(table)
