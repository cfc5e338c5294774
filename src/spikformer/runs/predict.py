"""Class names of pictures and recordings, by a network, weights, an engine or a run.

    for prediction in sf.predict("runs/photos", "photos/"):
        print(prediction.source, prediction.class_name, prediction.probability)

Engines need no torch here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spikformer.engine import Engine
from spikformer.engine.predict import Input, Prediction
from spikformer.engine.predict import predict as predict_inputs
from spikformer.runs.trained import load_answering
from spikformer.sampling import Recording

if TYPE_CHECKING:
    from spikformer.models import SpikingNetwork


def predict(
    model: SpikingNetwork | Engine | str | os.PathLike[str], inputs: Input | Iterable[Input]
) -> list[Prediction]:
    """Answers to files, folders of files, decoded pictures and recordings, in their order.

    `model` is a network with a card, an engine, or the path of either or of a run folder. A file that cannot be read
    raises the ValueError or OSError of its reader.
    """
    network = load_answering(Path(model)) if isinstance(model, str | os.PathLike) else model
    given = [inputs] if isinstance(inputs, str | os.PathLike | np.ndarray | Recording) else inputs
    listed = [each for source in given for each in _files(source)]
    if isinstance(network, Engine):
        return network.predict(listed)
    return _predict_with_torch(network, listed)


def _files(source: Input) -> list[Input]:
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        return list(list_files(Path(source)))
    return [source]


def list_files(folder: Path) -> list[Path]:
    """Every file of a folder and its subfolders, hidden ones left out, in the order of their names."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    found = [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not found:
        raise FileNotFoundError(f"{folder} has no files to predict; give a folder of pictures or recordings.")
    return sorted(found)


def _predict_with_torch(model: SpikingNetwork, inputs: list[Input]) -> list[Prediction]:
    import torch

    from spikformer.models.inspection import eval_mode

    weight = model.like

    def forward_steps(samples: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            readouts = model.forward_steps(torch.from_numpy(samples).to(weight.device, weight.dtype))
        return readouts.double().numpy(force=True)

    with eval_mode(model):
        return predict_inputs(forward_steps, model.resting_readout().double().numpy(force=True), model.card, inputs)
