"""Weights and engines that remember the data they were trained on, as `train` and `import --data-set` write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spikformer.data import DataSet
    from spikformer.engine import Engine
    from spikformer.models import Spikformer

_REMEMBERED = ("name", "class_names", "events", "mean", "std")


def load_trained(path: Path) -> tuple[Spikformer, dict[str, Any]]:
    """The model, and what it remembers of its data; weights that remember too little are refused."""
    from spikformer.engine.files import is_engine_file

    _check_not_a_run(path)
    if path.suffix == ".engine" or is_engine_file(path):
        raise ValueError(f"{path} is an engine, which only answers; give the weights it was compiled from.")
    from spikformer.models import load

    model = load(path)
    return model, _data_of(model, path)


def load_answering(path: Path) -> tuple[Spikformer | Engine, dict[str, Any]]:
    """The same for verbs that ask for answers alone, which a compiled engine gives, too."""
    from spikformer.engine.files import is_engine_file

    _check_not_a_run(path)
    if path.suffix != ".engine" and not is_engine_file(path):
        return load_trained(path)
    from spikformer.engine import load_engine

    engine = load_engine(path)
    return engine, _data_of(engine, path)


def _check_not_a_run(path: Path) -> None:
    """The folder of a run is not yet taken for its weights."""
    for name in ("best.safetensors", "last.safetensors"):
        if (path / name).is_file():
            raise IsADirectoryError(f"{path} is the folder of a run; give its weights, {path / name}.")


def _data_of(model: Spikformer | Engine, path: Path) -> dict[str, Any]:
    about = model.about.get("data")
    if not isinstance(about, dict) or not all(key in about for key in _REMEMBERED) or not _is_sound(about, model):
        raise ValueError(
            f"{path} does not say which data it was trained on; `train` notes that, and `import --data-set`."
        )
    if len(about["class_names"]) != model.config.num_classes:
        named, answered = len(about["class_names"]), model.config.num_classes
        raise ValueError(f"{path} names {named} classes and answers with {answered}; it is damaged.")
    return about


def _is_sound(about: dict[str, Any], model: Spikformer | Engine) -> bool:
    """Whether what a file remembers has the form that `train` gives it."""
    channels = model.config.in_channels

    def per_channel(values: Any) -> bool:
        numbers = isinstance(values, list) and all(isinstance(value, int | float) for value in values)
        return values is None or (numbers and len(values) in (1, channels))

    return (
        isinstance(about["name"], str)
        and isinstance(about["class_names"], list)
        and all(isinstance(name, str) for name in about["class_names"])
        and isinstance(about["events"], bool)
        and per_channel(about["mean"])
        and per_channel(about["std"])
        and isinstance(model.about.get("recipe", {}), dict)
    )


def open_data(model: Spikformer | Engine, about: dict[str, Any], path: Path | None) -> DataSet:
    """The data that weights remember, in the model's form; another is refused."""
    from spikformer.data import open_for_model

    share = model.about.get("recipe", {}).get("validation_share")
    data = open_for_model(model.config, about["name"], path, class_names=about["class_names"], validation_share=share)
    check_fits(data, model, about)
    return data


def check_fits(data: DataSet, model: Spikformer | Engine, about: dict[str, Any]) -> None:
    trained = about["class_names"]
    if list(data.class_names) != trained:
        raise ValueError(
            f"This data has {len(data.class_names)} classes, and the weights know {len(trained)} others; give them "
            "the data they were trained on."
        )
    if data.channels != model.config.in_channels:
        raise ValueError(
            f"This data has {data.channels} channels, and the weights want {model.config.in_channels}; give them the "
            "data they were trained on."
        )
