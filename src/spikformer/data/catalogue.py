"""Data sets by name: one function opens them all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from spikformer.config import ModelConfig
from spikformer.data import embedded
from spikformer.data.addresses import SOURCES
from spikformer.data.dataset import DataSet
from spikformer.data.events import sets as events
from spikformer.data.events.cache import FrameCache
from spikformer.data.images import sets as images
from spikformer.data.places import data_folder
from spikformer.disk import cache_folder
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import Fit, Slicing
from spikformer.vocabulary import did_you_mean

_IMAGES = ("size", "validation_share")
_PICTURES = (*_IMAGES, "crop_ratio", "class_names")
_EVENTS = ("size", "validation_share", "time_steps", "slicing", "fit", "cache_gb")


class _Entry(NamedTuple):
    """How to open a set, from a form made of the options that have a meaning for it."""

    open: Callable[..., DataSet]
    form: Callable[..., Any]
    options: tuple[str, ...]
    embedded: bool = False


_SETS = {
    "digits": _Entry(embedded.digits, images.ImageForm, ("size",), embedded=True),
    "digits_dvs": _Entry(
        embedded.digits_dvs,
        partial(events.EventForm, time_steps=8),
        ("size", "time_steps", "slicing", "fit"),
        embedded=True,
    ),
    "mnist": _Entry(images.mnist, images.ImageForm, _IMAGES),
    "fashion_mnist": _Entry(images.fashion_mnist, images.ImageForm, _IMAGES),
    "cifar10": _Entry(images.cifar10, images.ImageForm, _IMAGES),
    "cifar100": _Entry(images.cifar100, images.ImageForm, _IMAGES),
    "imagenet": _Entry(images.imagenet, images.ImageForm, _PICTURES),
    "image_folder": _Entry(images.image_folder, images.ImageForm, _PICTURES),
    "cifar10dvs": _Entry(events.cifar10dvs, events.EventForm, _EVENTS),
    "dvs128": _Entry(events.dvs128, events.EventForm, _EVENTS),
    "n_mnist": _Entry(events.n_mnist, events.EventForm, _EVENTS),
    "event_folder": _Entry(events.event_folder, events.EventForm, (*_EVENTS, "class_names", "sensor")),
}


def list_datasets() -> list[str]:
    """Names of all sets."""
    return list(_SETS)


def options_of(name: str) -> tuple[str, ...]:
    """Which options of `open_dataset` have a meaning for a set."""
    return _entry(name).options


def open_dataset(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    size: tuple[int, int] | None = None,
    validation_share: float | None = None,
    crop_ratio: float | None = None,
    class_names: Sequence[str] | None = None,
    time_steps: int | None = None,
    slicing: Slicing | None = None,
    fit: Fit | None = None,
    cache_gb: float | None = None,
    sensor: tuple[int, int] | None = None,
) -> DataSet:
    """A data set by its name; an option that is None is the set's own choice, one that it does not have is refused.

    Files are read from `root`. Without it they are kept in the user's cache folder, and downloaded to it if they may
    be; SPIKFORMER_CACHE names another folder. Embedded sets need neither.

        size              of images and frames: height, width
        validation_share  of the training split, held out of it where the set has no validation split (0.1)
        crop_ratio        of picture files: how much of the short side evaluation sees (0.875)
        class_names       of folders: in the order of a model's outputs, if not all classes are there, or not in order
        time_steps        frames of a recording (16)
        slicing, fit      how frames are made of events, see `to_frames`
        sensor            of an event folder whose files do not say it: height, width
        cache_gb          how much disk decoded frames may take (10); 0 decodes in every epoch
    """
    entry = _entry(name)
    given: dict[str, Any] = {
        "size": size,
        "validation_share": validation_share,
        "crop_ratio": crop_ratio,
        "class_names": class_names,
        "time_steps": time_steps,
        "slicing": slicing,
        "fit": fit,
        "cache_gb": cache_gb,
        "sensor": sensor,
    }
    given = {option: value for option, value in given.items() if value is not None}
    _check_values(given)
    if needless := given.keys() - set(entry.options):
        raise ValueError(f"{name} has no option {', '.join(sorted(needless))}; it has {', '.join(entry.options)}.")
    if "cache_gb" in entry.options:
        given["cache"] = _frame_cache(given.pop("cache_gb", 10.0))
    form = entry.form(**given)
    if entry.embedded:
        if root is not None:
            raise ValueError(f"{name} is embedded and reads no files, got the folder {os.fspath(root)}.")
        return entry.open(form)
    return _from_files(entry, name, root, form)


def open_for_model(
    config: ModelConfig,
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    class_names: Sequence[str] | None = None,
    validation_share: float | None = None,
    preprocessing: Preprocessing | None = None,
) -> DataSet:
    """A data set in the form that a model wants: its image size, and for events its number of time steps.

    With the `preprocessing` of the model's card, samples are made as in its training.
    """
    given: dict[str, Any] = {} if preprocessing is None else dict(vars(preprocessing))
    given |= {"size": config.image_size or given.get("size"), "time_steps": config.time_steps}
    given |= {"class_names": class_names, "validation_share": validation_share}
    options: dict[str, Any] = {option: given.get(option) for option in options_of(name)}
    return open_dataset(name, root, **options)


def _check_values(given: dict[str, Any]) -> None:
    """Before files are touched: a wrong value would make every sample look damaged."""
    time_steps, ratio = given.get("time_steps"), given.get("crop_ratio")
    for option in ("size", "sensor"):
        sides = given.get(option, (1, 1))
        if not (isinstance(sides, tuple) and len(sides) == 2 and all(map(_is_count, sides))):
            raise ValueError(f"{option} must be (height, width), whole numbers of at least 1, got {sides!r}.")
    if time_steps is not None and not _is_count(time_steps):
        raise ValueError(f"time_steps must be a whole number of at least 1, got {time_steps!r}.")
    if ratio is not None and not 0 < ratio <= 1:
        raise ValueError(f"crop_ratio must be above 0 and at most 1, got {ratio!r}.")
    for option, words in (("slicing", get_args(Slicing)), ("fit", get_args(Fit))):
        if given.get(option, words[0]) not in words:
            raise ValueError(f"{option} must be {' or '.join(words)}, got {given[option]!r}.")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _entry(name: str) -> _Entry:
    if name not in _SETS:
        hint = did_you_mean(name, _SETS, f"choose from {', '.join(_SETS)}.")
        raise ValueError(f"There is no data set {name!r}; {hint}")
    return _SETS[name]


def _frame_cache(gigabytes: float) -> FrameCache | None:
    if not 0 <= gigabytes < float("inf"):
        raise ValueError(f"cache_gb must be 0 or more, got {gigabytes!r}.")
    if not gigabytes:
        return None
    cache = FrameCache(cache_folder() / "frames", int(gigabytes * 1e9))
    return cache if cache.is_usable() else None


def _from_files(entry: _Entry, name: str, root: str | os.PathLike[str] | None, form: Any) -> DataSet:
    source = SOURCES.get(name)
    if source is None and root is None:
        raise ValueError(f"{name} reads a folder of yours; say which one (--data).")
    folder = Path(root).expanduser() if root is not None else data_folder(name)
    try:
        return entry.open(folder, form)
    except FileNotFoundError as error:
        if source is None:
            raise
        from spikformer.data.downloads import download, how_to_get  # slow to import, and only needed here

        if root is not None and any((folder / file).exists() for file in source.file_names):
            raise  # most of it is there: what the reader says is enough
        if root is not None:
            raise FileNotFoundError(f"{error} {how_to_get(source, folder)}") from None
        download(source, folder)
    return entry.open(folder, form)
