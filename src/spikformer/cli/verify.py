"""Check this installation, offline: the same numbers as the authors' code, the paper's sizes, and our own promises.

Example: spikformer verify
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from spikformer.cli.console import Terminal, print_table

if TYPE_CHECKING:
    from spikformer.runs.checks import Check


@dataclass(frozen=True)
class Options:
    golden: Path | None = None
    """Folder of recordings (golden files) to compare with, all that it has, instead of the ones in the package."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    from spikformer.runs.verify import verify

    logging.getLogger("spikformer").setLevel(logging.ERROR)  # dropped tensors are expected here
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
    """Sections; in each, checks under the subject that they share, or else under the claim."""
    console = Terminal(highlight=False)
    for section, checks in groupby(results, attrgetter("section")):
        console.print(f"\n[bold]{section}[/]")
        for heading, rows in _groups(list(checks)):
            console.print(f"  {heading}")
            table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
            for check, label in rows:
                table.add_row("    holds" if check.holds else "    [bold red]FAILS[/]", label, check.seen)
            print_table(table)


def _groups(checks: list[Check]) -> Iterator[tuple[str, list[tuple[Check, str]]]]:
    """Headings, and the checks under each with what the heading leaves unsaid."""
    while checks:
        heading, label = "subject", "claim"
        if len(checks) == 1 or checks[0].subject != checks[1].subject:
            heading, label = label, heading
        _, leading = next(groupby(checks, attrgetter(heading)))
        group = list(leading)
        yield getattr(group[0], heading), [(check, getattr(check, label)) for check in group]
        checks = checks[len(group) :]
