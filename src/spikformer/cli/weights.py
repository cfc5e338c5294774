"""Weights and engines that remember the data they were trained on, as `train` and `import --data-set` write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spikformer.data import DataSet
    from spikformer.engine import Engine
    from spikformer.models import SpikingNetwork


def load_trained(path: Path) -> SpikingNetwork:
    """The model; one whose card does not name its data raises a ValueError."""
    from spikformer.engine.file import is_engine_file

    _check_not_a_run(path)
    if path.suffix == ".engine" or is_engine_file(path):
        raise ValueError(f"{path} is an engine, which only answers; give the weights it was compiled from.")
    from spikformer.models import load

    model = load(path)
    _check_trained(model, path)
    return model


def load_answering(path: Path) -> SpikingNetwork | Engine:
    """The same for verbs that ask for answers alone, which a compiled engine gives, too."""
    from spikformer.engine.file import is_engine_file

    _check_not_a_run(path)
    if path.suffix != ".engine" and not is_engine_file(path):
        return load_trained(path)
    from spikformer.engine import load_engine

    engine = load_engine(path)
    _check_trained(engine, path)
    return engine


def _check_not_a_run(path: Path) -> None:
    """The folder of a run is not yet taken for its weights."""
    for name in ("best.safetensors", "last.safetensors"):
        if (path / name).is_file():
            raise IsADirectoryError(f"{path} is the folder of a run; give its weights, {path / name}.")


def _check_trained(model: SpikingNetwork | Engine, path: Path) -> None:
    if model.card.data_set is None or not model.card.class_names:
        raise ValueError(
            f"{path} does not say which data it was trained on; `train` notes that, and `import --data-set`."
        )


def open_data(model: SpikingNetwork | Engine, path: Path | None) -> DataSet:
    """The data that a network was trained on, preprocessed as its card says; another is refused."""
    from spikformer.data import open_for_model

    card = model.card
    assert card.data_set is not None
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


def check_fits(data: DataSet, model: SpikingNetwork | Engine) -> None:
    trained = model.card.class_names
    if data.class_names != trained:
        raise ValueError(
            f"This data has {len(data.class_names)} classes, and the weights know {len(trained)} others; give them "
            "the data they were trained on."
        )
    if data.channels != model.config.in_channels:
        raise ValueError(
            f"This data has {data.channels} channels, and the weights want {model.config.in_channels}; give them the "
            "data they were trained on."
        )
