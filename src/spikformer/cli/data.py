"""Look at a data set: a contact sheet and the counts of its classes. Or check it: read every file, list the bad ones.

Sets: digits and digits_dvs need no files; mnist, fashion_mnist, cifar10, cifar100 and cifar10dvs are downloaded if no
folder is given; n_mnist, dvs128, imagenet, image_folder and event_folder need one.

Example: spikformer data show digits_dvs --output digits.png

Example: spikformer data check image_folder --data photos

Both take --help and --json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from spikformer.cli.console import Terminal, cell, check_least, plain_table, print_table, say
from spikformer.validation import Split

if TYPE_CHECKING:
    from spikformer.runs.data import DataCheck

_LISTED = 40  # classes in the table of counts


@dataclass(frozen=True)
class ShowOptions:
    """Write a contact sheet, and count the samples of each class."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA_SET")]
    """The data set."""
    data: Path | None = None
    """Folder or archive with its files."""
    split: Split | None = None
    """Show this split; by default the first there is."""
    output: Path | None = None
    """Where to write the sheet, as .png, .svg, .pdf, .jpg or .webp; NAME_SPLIT.png by default."""
    rows: int = 12
    """Classes on the sheet, spread evenly where there are more."""
    columns: int = 8
    """Samples of each class on the sheet; of events, frames of one sample."""
    json: bool = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class CheckOptions:
    """Read everything once, and list every bad file."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA_SET")]
    """The data set."""
    data: Path | None = None
    """Folder or archive with its files."""
    split: Split | None = None
    """Check this split alone."""
    workers: int = 2
    """Processes that read."""
    json: bool = False
    """Print JSON instead of text."""


Options = Annotated[ShowOptions, tyro.conf.subcommand("show")] | Annotated[CheckOptions, tyro.conf.subcommand("check")]


def run(options: ShowOptions | CheckOptions) -> int:
    return _show(options) if isinstance(options, ShowOptions) else _check(options)


def _show(options: ShowOptions) -> int:
    from spikformer.runs.data import MOST_TILES, describe_data, show_data

    check_least(options, most=MOST_TILES, rows=1, columns=1)
    data, sheet = show_data(
        options.name,
        options.data,
        split=options.split,
        output=options.output,
        rows=options.rows,
        columns=options.columns,
    )
    described = describe_data(data)
    if options.json:
        print(json.dumps(described | {"sheet": str(sheet)}))
        return 0
    print_table(_counts_table(data.class_names, described["samples_by_class"]))
    height, width = data.size
    kind = "frames of events" if data.events else "images"
    channels = "1 channel" if data.channels == 1 else f"{data.channels} channels"
    say(f"{kind} of {height}×{width}, {channels}")
    say(f"wrote {sheet}")
    return 0


def _check(options: CheckOptions) -> int:
    from spikformer.runs.data import check_data, describe_data

    check_least(options, workers=0)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("Reading", total=None)

        def show(split: str, done: int, total: int) -> None:
            progress.update(bar, description=f"Reading {split}", completed=done, total=total)

        found = check_data(options.name, options.data, split=options.split, workers=options.workers, on_samples=show)
    if options.json:
        described = {"name": options.name} if found.data is None else describe_data(found.data)
        print(json.dumps(described | {"bad": found.bad}))
    else:
        for line in [*found.bad, f"{options.name}: {_verdict(found)}"]:
            say(line)
    return 1 if found.bad else 0


def _verdict(found: DataCheck) -> str:
    if found.data is None:
        return f"{found.num_unreadable} of its files cannot be read"
    total = found.num_samples
    counted = f"{found.num_unreadable} of {total} samples cannot" if found.bad else f"all {total} samples can"
    return f"{counted} be read ({', '.join(found.splits)})"


def _counts_table(class_names: tuple[str, ...], counts: dict[str, list[int]]) -> Table:
    table = plain_table(show_footer=True)
    table.add_column("Class", "in all", no_wrap=True)
    for split, numbers in counts.items():
        table.add_column(split, f"{sum(numbers)}", justify="right", no_wrap=True)
    for label, name in enumerate(class_names[:_LISTED]):
        table.add_row(cell(name), *(str(numbers[label]) for numbers in counts.values()))
    if len(class_names) > _LISTED:
        rest = [str(sum(numbers[_LISTED:])) for numbers in counts.values()]
        table.add_row(f"{len(class_names) - _LISTED} more classes", *rest)
    return table
