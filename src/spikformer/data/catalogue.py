"""Data sets by name: one function opens them all, another one registers yours."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spikformer.config import NetworkConfig
from spikformer.data import embedded
from spikformer.data import options as known
from spikformer.data.addresses import SOURCES, data_folder
from spikformer.data.dataset import DataSet
from spikformer.data.events import sets as events
from spikformer.data.images import sets as images
from spikformer.data.options import DataOptions
from spikformer.errors import FieldError, UnknownNameError
from spikformer.preprocessing import Preprocessing
from spikformer.validation import check_mapping, check_text

Opener = Callable[[Path, DataOptions], DataSet]


class _Entry(NamedTuple):
    """How to open a set, the options it has, and whether it reads a folder."""

    open: Callable[..., DataSet]
    options: tuple[str, ...]
    folder: Literal["none", "needed", "optional"] = "needed"


_SETS = {
    "digits": _Entry(embedded.digits, ("size", "resampling", "mean", "std"), "none"),
    "digits_dvs": _Entry(embedded.digits_dvs, ("size", "time_steps", "slicing", "fit"), "none"),
    "mnist": _Entry(images.mnist, known.IMAGES),
    "fashion_mnist": _Entry(images.fashion_mnist, known.IMAGES),
    "cifar10": _Entry(images.cifar10, known.IMAGES),
    "cifar100": _Entry(images.cifar100, known.IMAGES),
    "imagenet": _Entry(images.imagenet, known.PICTURES),
    "image_folder": _Entry(images.image_folder, known.PICTURES),
    "cifar10dvs": _Entry(events.cifar10dvs, known.EVENTS),
    "dvs128": _Entry(events.dvs128, known.EVENTS),
    "n_mnist": _Entry(events.n_mnist, known.EVENTS),
    "event_folder": _Entry(events.event_folder, known.RECORDINGS),
}


def list_datasets() -> list[str]:
    """Names of all sets, those that were registered too."""
    return list(_SETS)


def options_of(name: str) -> tuple[str, ...]:
    """Which fields of `DataOptions` have a meaning for a set."""
    return _entry(name).options


def register_dataset(
    name: str, open: Callable[[Path | None, DataOptions], DataSet], options: Sequence[str] = ()
) -> None:
    """Make a set of your own known by a name, to `open_dataset` and to every recipe and verb of this process.

    `open` gets the folder that the user names, or None, and the options, of which only those listed can be set. It
    returns a `DataSet` of that name, in the size and with the time steps that the options ask for.
    """
    check_text("name", name, 100)
    check_mapping(DataOptions, dict.fromkeys(options), required=())
    if name in _SETS:
        raise FieldError("name", f"There is a data set {name!r} already; choose another name.")
    _SETS[name] = _Entry(open, tuple(options), "optional")


def open_dataset(
    name: str, root: str | os.PathLike[str] | None = None, options: DataOptions | None = None, **overrides: Any
) -> DataSet:
    """A data set by its name, read as `options` say, or single fields of them: size=(32, 32), crop_ratio=1.

    Files are read from `root`. Without it they are kept in the user's cache folder, and downloaded to it if they may
    be; SPIKFORMER_CACHE names another folder. Embedded sets need neither.
    """
    entry = _entry(name)
    options = (options or DataOptions()).override(**overrides)
    if needless := options.given().keys() - set(entry.options):
        raise FieldError(
            min(needless), f"{name} has no option {', '.join(sorted(needless))}; it has {', '.join(entry.options)}."
        )
    if entry.folder == "none":
        if root is not None:
            raise FieldError("root", f"{name} is embedded and reads no files, got the folder {os.fspath(root)}.")
        return entry.open(options)
    if entry.folder == "optional":
        data = entry.open(None if root is None else Path(root).expanduser(), options)
        if not isinstance(data, DataSet) or data.name != name:
            raise FieldError("name", f"{name} was registered with a function that returns no DataSet of that name.")
        return data
    return _from_files(entry.open, name, root, options)


def open_for_model(
    config: NetworkConfig,
    name: str,
    root: str | os.PathLike[str] | None = None,
    options: DataOptions | None = None,
    *,
    class_names: Sequence[str] | None = None,
    validation_share: float | None = None,
    preprocessing: Preprocessing | None = None,
) -> DataSet:
    """A data set in the form that a model needs: its image size, and for events its number of time steps.

    With the `preprocessing` of the model's card, samples are made as in its training.
    """
    given: dict[str, Any] = {} if preprocessing is None else dict(vars(preprocessing))
    given |= {} if options is None else options.given()
    given |= {"size": config.image_size or given.get("size")}
    given |= {"time_steps": given.get("time_steps") or config.time_steps}
    given |= {} if class_names is None else {"class_names": class_names}
    given |= {} if validation_share is None else {"validation_share": validation_share}
    chosen = {option: given.get(option) for option in options_of(name)}
    return open_dataset(name, root, options, **chosen)


def _entry(name: str) -> _Entry:
    if name not in _SETS:
        raise UnknownNameError("data set", name, _SETS)
    return _SETS[name]


def _from_files(open: Opener, name: str, root: str | os.PathLike[str] | None, options: DataOptions) -> DataSet:
    source = SOURCES.get(name)
    if source is None and root is None:
        raise FieldError("root", f"{name} reads a folder of yours; say which one (--data).")
    folder = Path(root).expanduser() if root is not None else data_folder(name)
    try:
        return open(folder, options)
    except FileNotFoundError as error:
        if source is None:
            raise
        from spikformer.data.download import download, how_to_get  # slow to import, and only needed here

        if root is not None and any((folder / file).exists() for file in source.file_names):
            raise  # most of it is there: what the reader says is enough
        if root is not None:
            raise FileNotFoundError(f"{error} {how_to_get(source, folder)}") from None
        download(source, folder)
    return open(folder, options)
