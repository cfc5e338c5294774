"""Check this installation, offline: the same numbers as the authors' code, the paper's sizes, and our own promises.

Example: spikformer verify
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from spikformer.cli.console import Terminal, print_table

if TYPE_CHECKING:
    from spikformer.runs.verify import Check


@dataclass(frozen=True)
class Options:
    golden: Path | None = None
    """Folder of golden files to compare with, instead of the ones in the package."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    from spikformer.runs.verify import verify

    logging.getLogger("spikformer").setLevel(logging.ERROR)  # dropped tensors are no news here
    with Progress(
        TextColumn("Checking"), BarColumn(), console=Terminal(stderr=True), transient=True, disable=options.json
    ) as progress:
        task = progress.add_task("")
        found = verify(options.golden, lambda done, total: progress.update(task, completed=done, total=total))
    if options.json:
        print(json.dumps(asdict(found) | {"failed": found.num_failed}))
        return int(found.num_failed > 0)
    _print_report(found.checks)
    failed, count = found.num_failed, len(found.checks)
    verdict = f"[bold red]{failed} of {count} checks fail[/]" if failed else f"All {count} checks hold"
    Terminal().print(f"\n{verdict}, in {found.seconds:.1f} s ({found.backend}).", highlight=False, soft_wrap=True)
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
