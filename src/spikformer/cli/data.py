"""Look at a data set: a contact sheet and the counts of its classes. Or check it: read every file, list the bad ones.

Sets: digits and digits_dvs need no files; mnist, fashion_mnist, cifar10, cifar100 and cifar10dvs are downloaded if no
folder is given; n_mnist, dvs128, imagenet, image_folder and event_folder need one.

Example: spikformer data show digits_dvs --output digits.png

Example: spikformer data check image_folder --data photos

Both take --help and --json.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from spikformer.cli.console import Terminal, cell, print_table, say
from spikformer.validation import Split

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from spikformer.data import DataSet

_LISTED = 40  # classes in the table of counts


@dataclass(frozen=True)
class Show:
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
class Check:
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


Options = Annotated[Show, tyro.conf.subcommand("show")] | Annotated[Check, tyro.conf.subcommand("check")]


def run(options: Show | Check) -> int:
    return _show(options) if isinstance(options, Show) else _check(options)


def _show(options: Show) -> int:
    from spikformer.visualise.style import check_figure_path, save_figure

    for option in ("rows", "columns"):
        if not 1 <= getattr(options, option) <= 1000:
            raise ValueError(f"--{option} must be 1 to 1000, got {getattr(options, option)}.")
    if options.output is not None:
        check_figure_path(options.output)
    data = _open(options, time_steps=options.columns)
    split = options.split or data.splits[0]
    output = options.output or Path(f"{data.name}_{split}.png")
    save_figure(_sheet(data, split, options.rows, options.columns), output)
    if options.json:
        print(json.dumps(_description(data) | {"sheet": str(output)}))
        return 0
    print_table(_counts_table(data))
    height, width = data.size
    kind = "frames of events" if data.events else "images"
    channels = "1 channel" if data.channels == 1 else f"{data.channels} channels"
    say(f"{kind} of {height}×{width}, {channels}")
    say(f"wrote {output}")
    return 0


def _check(options: Check) -> int:
    from spikformer.data import DamagedFilesError

    if options.workers < 0:
        raise ValueError(f"--workers must be at least 0, got {options.workers}.")
    description: dict[str, Any] = {"name": options.name}
    try:
        data = _open(options)
    except DamagedFilesError as damage:
        bad = [str(error) for error in damage.errors]
        verdict = f"{len(bad)} of its files cannot be read"
    else:
        splits = [options.split] if options.split else data.splits
        failures = sum((_unreadable(data, split, options) for split in splits), Counter[str]())
        bad = list(failures)
        description = _description(data)
        total = sum(len(data.split(split)) for split in splits)
        verdict = f"{failures.total()} of {total} samples cannot be read" if bad else f"all {total} samples can be read"
        verdict = f"{verdict} ({', '.join(splits)})"
    if options.json:
        print(json.dumps(description | {"bad": bad}))
        return 1 if bad else 0
    for line in [*bad, f"{options.name}: {verdict}"]:
        say(line)
    return 1 if bad else 0


def _unreadable(data: DataSet, split: str, options: Check) -> Counter[str]:
    """Why samples of a split cannot be read, and how many for each reason."""
    from spikformer.data import Loader

    loader = Loader(data, split, batch_size=16, training=False, workers=options.workers, quiet=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(f"Reading {split}", total=len(data.split(split)))
        for batch in loader.epoch(0):
            progress.advance(bar, len(batch.labels) + len(batch.reasons))
    return loader.unreadable


def _open(options: Show | Check, time_steps: int | None = None) -> DataSet:
    """Decoding events anew: a check must read the files themselves, and a sheet is made once."""
    from spikformer.data import open_dataset, options_of

    there = options_of(options.name)
    return open_dataset(
        options.name,
        options.data,
        time_steps=time_steps if "time_steps" in there else None,
        cache_gb=0 if "cache_gb" in there else None,
    )


def _sheet(data: DataSet, split: str, num_rows: int, num_columns: int) -> Figure:
    """Samples of every class in a row; of events, the frames of one."""
    from spikformer.visualise.mosaic import EVENT_LEGEND, mosaic

    samples = data.split(split)
    present = sorted(set(samples.labels.tolist()))
    chosen = [
        present[index * len(present) // min(num_rows, len(present))] for index in range(min(num_rows, len(present)))
    ]
    rows = [(label, tiles) for label in chosen if (tiles := _tiles(data, split, label, num_columns))]
    if not rows:
        raise ValueError(f"No sample of {data.name}, {split}, can be read; `spikformer data check` lists why.")
    classes = (
        f"{len(rows)} of {len(data.class_names)} classes"
        if len(rows) < len(data.class_names)
        else f"{len(rows)} classes"
    )
    title = f"{data.name}, {split}: {classes}"
    names = [f"frame {number}" for number in range(1, num_columns + 1)] if data.events else []
    legend = EVENT_LEGEND if data.events else ()
    captions = [data.class_names[label] for label, _ in rows]
    figure, _ = mosaic([tiles for _, tiles in rows], captions, names, title, f"Samples of {title}.", legend)
    return figure


def _tiles(data: DataSet, split: str, label: int, num_columns: int) -> list[np.ndarray]:
    """The first samples of a class that can be read; of events, the frames of the first."""
    import numpy as np

    from spikformer.visualise.mosaic import brightest_count, event_tile, image_tile, tile_side

    samples = data.split(split)
    side = tile_side(*data.size)
    tiles: list[np.ndarray] = []
    for index in np.flatnonzero(samples.labels == label).tolist():
        try:
            sample = samples[index]
        except (ValueError, OSError):
            continue
        if data.events:
            brightest = brightest_count(sample)
            return [event_tile(frame, side, brightest) for frame in sample]
        tiles.append(image_tile(sample, side))
        if len(tiles) == num_columns:
            break
    return tiles


def _counts(data: DataSet) -> dict[str, list[int]]:
    import numpy as np

    return {
        split: np.bincount(data.split(split).labels, minlength=len(data.class_names)).tolist() for split in data.splits
    }


def _description(data: DataSet) -> dict[str, Any]:
    return {
        "name": data.name,
        "class_names": data.class_names,
        "channels": data.channels,
        "size": data.size,
        "events": data.events,
        "samples_by_class": _counts(data),
    }


def _counts_table(data: DataSet) -> Table:
    counts = _counts(data)
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), show_footer=True)
    table.add_column("Class", "in all", no_wrap=True)
    for split, numbers in counts.items():
        table.add_column(split, f"{sum(numbers)}", justify="right", no_wrap=True)
    for label, name in enumerate(data.class_names[:_LISTED]):
        table.add_row(cell(name), *(str(numbers[label]) for numbers in counts.values()))
    if len(data.class_names) > _LISTED:
        rest = [str(sum(numbers[_LISTED:])) for numbers in counts.values()]
        table.add_row(f"{len(data.class_names) - _LISTED} more classes", *rest)
    return table
