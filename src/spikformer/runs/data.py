"""A data set looked at: a contact sheet, the counts of its classes, and a check that reads every file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from spikformer.data import DamagedFilesError, DataSet, Loader, open_dataset, options_of
from spikformer.errors import FieldError
from spikformer.validation import check_at_least
from spikformer.visualise.mosaic import EVENT_LEGEND, brightest_count, event_tile, image_tile, mosaic, tile_side
from spikformer.visualise.style import check_figure_path, save_figure

MOST_TILES = 1000  # in a row or a column of a sheet
_BATCH = 16


def show_data(
    name: str,
    data: str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    output: Path | None = None,
    rows: int = 12,
    columns: int = 8,
) -> tuple[DataSet, Path]:
    """Open a set and write its contact sheet; the set, and where the sheet is.

    data     folder or archive with its files
    split    by default the first there is
    output   by default NAME_SPLIT.png in the current folder
    rows     classes on the sheet, spread evenly where there are more
    columns  samples of each class; of events, frames of one sample
    """
    for field, value in (("rows", rows), ("columns", columns)):
        if not 1 <= value <= MOST_TILES:
            raise FieldError(field, f"{field} must be 1 to {MOST_TILES}, got {value}.")
    if output is not None:
        check_figure_path(output)
    opened = _open_uncached(name, data, columns)
    split = split or opened.splits[0]
    output = output or Path(f"{opened.name}_{split}.png")
    save_figure(contact_sheet(opened, split, rows, columns), output)
    return opened, output


def describe_data(data: DataSet) -> dict[str, Any]:
    """What a set is, and how many samples each class has in each split, as plain data."""
    return {
        "name": data.name,
        "class_names": data.class_names,
        "channels": data.channels,
        "size": data.size,
        "events": data.events,
        "samples_by_class": {
            split: np.bincount(data.split(split).labels, minlength=len(data.class_names)).tolist()
            for split in data.splits
        },
    }


@dataclass(frozen=True)
class DataCheck:
    """What reading every sample of a set found."""

    data: DataSet | None
    """None if the set could not even be opened."""
    splits: tuple[str, ...]
    num_samples: int
    num_unreadable: int
    """Samples, or files of a set that could not be opened."""
    bad: tuple[str, ...]
    """Why they cannot be read, each reason once."""


def check_data(
    name: str,
    data: str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    workers: int = 2,
    on_samples: Callable[[str, int, int], None] = lambda split, done, total: None,
) -> DataCheck:
    """Read every sample once, of one split or of all; `on_samples` gets the split, samples read and samples in all."""
    check_at_least("workers", workers, 0)
    try:
        opened = _open_uncached(name, data)
    except DamagedFilesError as damage:
        bad = tuple(str(error) for error in damage.errors)
        return DataCheck(None, (), 0, len(bad), bad)
    splits = (split,) if split else tuple(opened.splits)
    failures = Counter[str]()
    for each in splits:
        loader = Loader(opened, each, batch_size=_BATCH, training=False, workers=workers, quiet=True)
        done, total = 0, len(opened.split(each))
        for batch in loader.epoch(0):
            done += len(batch.labels) + len(batch.reasons)
            on_samples(each, done, total)
        failures += loader.unreadable
    num_samples = sum(len(opened.split(each)) for each in splits)
    return DataCheck(opened, splits, num_samples, failures.total(), tuple(failures))


def contact_sheet(data: DataSet, split: str, num_rows: int, num_columns: int) -> Figure:
    """Samples of every class in a row; of events, the frames of one."""
    present = sorted(set(data.split(split).labels.tolist()))
    num_rows = min(num_rows, len(present))
    chosen = [present[index * len(present) // num_rows] for index in range(num_rows)]
    rows = [(label, tiles) for label in chosen if (tiles := _tiles(data, split, label, num_columns))]
    if not rows:
        raise FieldError("data", f"No sample of {data.name}, {split}, can be read; `spikformer data check` lists why.")
    of_all = f" of {len(data.class_names)}" if len(rows) < len(data.class_names) else ""
    title = f"{data.name}, {split}: {len(rows)}{of_all} classes"
    names = [f"frame {number}" for number in range(1, num_columns + 1)] if data.events else []
    legend = EVENT_LEGEND if data.events else ()
    captions = [data.class_names[label] for label, _ in rows]
    figure, _ = mosaic([tiles for _, tiles in rows], captions, names, title, f"Samples of {title}.", legend)
    return figure


def _tiles(data: DataSet, split: str, label: int, num_columns: int) -> list[np.ndarray]:
    """The first samples of a class that can be read; of events, the frames of the first."""
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


def _open_uncached(name: str, data: str | os.PathLike[str] | None, time_steps: int | None = None) -> DataSet:
    """Without the cache of decoded events: a check must read the files themselves, and a sheet is made once."""
    there = options_of(name)
    return open_dataset(
        name,
        data,
        time_steps=time_steps if "time_steps" in there else None,
        cache_gb=0 if "cache_gb" in there else None,
    )
