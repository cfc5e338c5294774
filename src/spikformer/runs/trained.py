"""Trained weights or an engine, shipped or from a file or a run folder, with the data they were trained on."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spikformer.card import ModelCard
from spikformer.config import NetworkConfig
from spikformer.errors import FieldError, FileError
from spikformer.weights import find_weights, is_read_only, is_shipped

if TYPE_CHECKING:
    from spikformer.data import DataSet, Samples
    from spikformer.engine import Engine
    from spikformer.models import SpikingNetwork


def weights_path(path: str | os.PathLike[str]) -> Path:
    """The weights of a shipped name, an address on the hub, or a run folder, best or last; any other file as it is."""
    path = find_weights(path)
    for name in ("best.safetensors", "last.safetensors"):
        if (path / name).is_file():
            return path / name
    if (path / "state.safetensors").is_file():
        message = f"{path} has no weights before its first epoch ends; `spikformer train --resume --output {path}`."
        raise IsADirectoryError(message)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder without weights; give a run folder, or a weights file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no weights file or run folder {path}.")
    return path


def data_path(path: str | os.PathLike[str]) -> Path | None:
    """Where the run that a folder or a file in it belongs to found its data; None if nothing says."""
    from spikformer.runs.folder import Run

    path = find_weights(path)
    try:
        data = Run(path if path.is_dir() else path.parent).description.data
    except ValueError:
        return None
    return None if data is None else Path(data)


def output_beside(weights: Path, name: str) -> Path:
    """Where something about weights is written by default: beside them; of read-only ones, into the current folder."""
    return Path(name) if is_read_only(weights) else weights.with_name(name)


def load_trained(path: str | os.PathLike[str]) -> SpikingNetwork:
    """The model; ValueError if its card does not name its data, or if it is an engine."""
    from spikformer.engine.file import is_engine_file

    path = weights_path(path)
    if path.suffix == ".engine" or is_engine_file(path):
        raise FileError(path, "is an engine, without layers to watch; give the weights it was compiled from.", "unfit")
    from spikformer.models import load

    model = load(path)
    _check_trained(model, path)
    return model


def load_answering(path: str | os.PathLike[str], *, prefer_engine: bool = False) -> SpikingNetwork | Engine:
    """The same for callers that need predictions alone, which a compiled engine gives, too.

    With `prefer_engine`, shipped weights become an engine, which starts sooner than torch, and without torch all do.
    """
    from spikformer.engine import compile_engine, load_engine
    from spikformer.engine.file import is_engine_file

    path = weights_path(path)
    if path.suffix != ".engine" and not is_engine_file(path):
        compiled = prefer_engine and (is_shipped(path) or find_spec("torch") is None)
        if not compiled or find_spec("spikformer._native") is None:
            return load_trained(path)
        engine = compile_engine(path)
    else:
        engine = load_engine(path)
    if getattr(engine, "config", None) is None:
        raise FileError(path, "holds a program without the config of its network; compile the weights again.", "unfit")
    _check_trained(engine, path)
    return engine


def _check_trained(model: SpikingNetwork | Engine, path: Path) -> None:
    if model.card.data_set is None or not model.card.class_names:
        raise FileError(
            path,
            "does not say which data it was trained on; save it with a card that does, as `train` and `import "
            "--data-set` do.",
            "unfit",
        )


class Described(Protocol):
    """A model, an engine, or what says as much of itself."""

    @property
    def config(self) -> NetworkConfig: ...
    @property
    def card(self) -> ModelCard: ...


def open_data(model: Described, path: Path | None) -> DataSet:
    """The data that a network was trained on, preprocessed as its card says; ValueError for any other."""
    from spikformer.data import open_for_model

    card = model.card
    if card.data_set is None:
        message = "The network's card does not name its data set; pass the data, or a card that does."
        raise FieldError("data_set", message)
    share = card.settings.get("validation_share")
    data = open_for_model(
        model.config,
        card.data_set,
        path,
        class_names=card.class_names,
        validation_share=share,
        preprocessing=card.preprocessing,
    )
    check_fits(data, model)
    return data


def check_fits(data: DataSet, model: Described) -> None:
    trained = model.card.class_names
    if data.class_names != trained:
        raise FieldError(
            "class_names",
            f"This data has {len(data.class_names)} classes, and the weights were trained on {len(trained)} others; "
            "give them the data they were trained on.",
        )
    if data.channels != model.config.in_channels:
        raise FieldError(
            "in_channels",
            f"This data has {data.channels} channels, and the weights need {model.config.in_channels}; give them the "
            "data they were trained on.",
        )


def choose_samples(data: DataSet, split: str, count: int) -> list[int]:
    """Indices of samples that can be read: one for each class, of classes from all over the list, then further ones."""
    samples = data.split(split)
    classes = np.unique(samples.labels)
    members = {label: iter(np.flatnonzero(samples.labels == label)) for label in classes}
    spread = classes[np.unique(np.linspace(0, len(classes) - 1, min(count, len(classes))).round().astype(int))]
    turn = [*spread, *np.setdiff1d(classes, spread)] if count else []
    chosen: list[int] = []
    while turn and len(chosen) < count:
        label = turn.pop(0)
        index = next((int(index) for index in members[label] if _can_be_read(samples, int(index))), None)
        if index is not None:
            chosen.append(index)
            turn.append(label)  # its next, once every class has had its turn
    return sorted(chosen, key=lambda index: (int(samples.labels[index]), index))


def _can_be_read(samples: Samples, index: int) -> bool:
    try:
        samples[index]
    except (ValueError, OSError):
        return False
    return True


def compile_weights(weights: str | os.PathLike[str], output: Path | None = None) -> tuple[Engine, Path]:
    """Write the engine of weights, by default beside them; the engine as it was written, and where it is."""
    from spikformer.engine import compile_engine, load_engine
    from spikformer.engine.file import is_engine_file
    from spikformer.io import check_is_file

    path = weights_path(weights)
    check_is_file(path)
    if is_engine_file(path):
        raise FileError(path, "is an engine already; give the weights it was compiled from.", "unfit")
    output = output or output_beside(path, path.with_suffix(".engine").name)
    if output.suffix != ".engine":
        raise FieldError("output", f"output= (--output) must end in .engine, got {output}.")
    compile_engine(path).save(output)
    return load_engine(output), output


def import_weights(
    source: Path, output: Path | None = None, *, data_set: str | None = None, data: Path | None = None, **network: Any
) -> tuple[SpikingNetwork, Path]:
    """Convert a published checkpoint by `from_official`, which takes `network`; the model as written, and where it is.

    output    by default beside the source, ending in .spikformer.safetensors
    data_set  what it was trained on, for its card, so that evaluate, predict and others can use it
    data      where that set's files are
    """
    from spikformer.models import from_official, load, save

    stem = source.name.removesuffix(".tar").removesuffix(".pth").removesuffix(".safetensors")
    output = output or source.with_name(f"{stem}.spikformer.safetensors")
    if output.suffix != ".safetensors" or output.resolve() == source.resolve():
        message = f"output= (--output) must be another file than the source and end in .safetensors, got {output}."
        raise FieldError("output", message)
    if data is not None and data_set is None:
        raise FieldError(
            "data", "data= (--data) is for the set that data_set= (--data-set) names; give both, or neither."
        )
    model = from_official(source, **network)
    if data_set is not None:
        _note_data(model, data_set, data)
    save(model, output)
    return load(output), output


def _note_data(model: SpikingNetwork, name: str, path: Path | None) -> None:
    """On the card of a model that has none; raises for a set that does not fit it."""
    from spikformer.data import open_for_model

    config = model.config
    if config.image_size is None:
        raise FieldError(
            "image_size", "The checkpoint does not state the size of its images; give image_size= (--image-size), too."
        )
    data = open_for_model(config, name, path)
    if len(data.class_names) != config.num_classes:
        raise FieldError(
            "data_set",
            f"{name} has {len(data.class_names)} classes, but these weights have {config.num_classes}; name the data "
            "set they were trained on.",
        )
    model.card = data.card(model.card.architecture)
    check_fits(data, model)
