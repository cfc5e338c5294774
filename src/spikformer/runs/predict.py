"""Class names of pictures and recordings, by a network, weights, an engine or a run.

    for prediction in sf.predict("runs/photos", "photos/"):
        print(prediction.source, prediction.class_name, prediction.probability)

Engines need no torch here.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spikformer.engine import Engine
from spikformer.engine.anytime import AnytimeAnswers, Confidence, Stepper, answer_anytime, wanted_confidence
from spikformer.engine.predict import Input, Prediction
from spikformer.engine.predict import predict as predict_inputs
from spikformer.io import write_atomically
from spikformer.runs.trained import load_answering
from spikformer.sampling import Recording
from spikformer.validation import check_at_least

if TYPE_CHECKING:
    from spikformer.layers import StreamState
    from spikformer.models import SpikingNetwork


def predict(
    model: SpikingNetwork | Engine | str | os.PathLike[str],
    inputs: Input | Iterable[Input],
    *,
    confidence: Confidence | None = None,
) -> list[Prediction]:
    """Answers to files, folders of files, decoded pictures and recordings, in their order.

    `model` is a network with a card, an engine, the path of either or of a run folder, or a shipped name. A file that
    cannot be read raises the ValueError or OSError of its reader. With a `confidence`, an answer ends at the first
    time step at which its probability reaches that; `Prediction.num_steps` says which. "card" takes the one that the
    network's card stores, see `spikformer anytime --store`.
    """
    network = load_answering(model, prefer_engine=True) if isinstance(model, str | os.PathLike) else model
    given = [inputs] if isinstance(inputs, str | os.PathLike | np.ndarray | Recording) else inputs
    wanted = wanted_confidence(confidence, network.card)
    listed = [each for source in given for each in _files(source)]
    if isinstance(network, Engine):
        return network.predict(listed, confidence=wanted)
    return _predict_with_torch(network, listed, wanted)


def _files(source: Input) -> list[Input]:
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        return list(list_files(Path(source)))
    return [source]


@dataclass(frozen=True)
class FileAnswer:
    """What a network says of a file, or why the file cannot be read."""

    file: Path
    classes: tuple[tuple[str, float], ...] = ()
    """Names and probabilities, the likeliest first; none if no spike reaches the head."""
    silent: bool = False
    num_steps: int | None = None
    """Time steps that it took, where a confidence was given."""
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        if self.error is not None:
            return {"file": str(self.file), "error": self.error}
        if self.silent:
            return {"file": str(self.file), "silent": True, "classes": []}
        steps = {} if self.num_steps is None else {"steps": self.num_steps}
        named = [{"class": name, "probability": share} for name, share in self.classes]
        return {"file": str(self.file), "classes": named} | steps


def answer_files(
    model: SpikingNetwork | Engine,
    files: Iterable[Path],
    top: int = 3,
    confidence: float | None = None,
    on_file: Callable[[int], None] | None = None,
) -> list[FileAnswer]:
    """The `top` likeliest classes of every file, or why it could not be read.

    `on_file` is called with 1 after each file, as a progress bar advances.
    """
    check_at_least("top", top, 1)
    answers = []
    for file in files:
        answers.append(_answer(model, file, top, confidence))
        if on_file is not None:
            on_file(1)
    return answers


def _answer(model: SpikingNetwork | Engine, file: Path, top: int, confidence: float | None) -> FileAnswer:
    try:
        (found,) = predict(model, file, confidence=confidence)
    except (ValueError, OSError) as error:
        return FileAnswer(file, error=str(error))
    if found.silent:
        return FileAnswer(file, silent=True)
    return FileAnswer(file, tuple(found.top(top)), num_steps=None if confidence is None else found.num_steps)


def write_csv(answers: Sequence[FileAnswer], path: Path, top: int) -> None:
    """A row for each file: its classes and their probabilities, the likeliest first, and its error.

    With a confidence, also the number of time steps that the answer took.
    """
    columns = [name for number in range(1, top + 1) for name in (f"class_{number}", f"probability_{number}")]
    columns += ["steps"] if any(answer.num_steps is not None for answer in answers) else []
    text = io.StringIO()
    writer = csv.DictWriter(text, ["file", *columns, "error"], restval="", lineterminator="\n")
    writer.writeheader()
    for answer in answers:
        row = {"file": str(answer.file), "error": answer.error or ""}
        if answer.num_steps is not None:
            row["steps"] = str(answer.num_steps)
        for number, (name, share) in enumerate(answer.classes, 1):
            row |= {f"class_{number}": name, f"probability_{number}": f"{share:.6g}"}
        writer.writerow(row)
    # A file's name can be bytes that no encoding has; the other answers are worth keeping.
    write_atomically(path, text.getvalue().encode(errors="backslashreplace"))


def expand_folders(paths: Iterable[Path]) -> list[Path]:
    """The paths, with every folder replaced by its files."""
    return [file for path in paths for file in (list_files(path) if path.is_dir() else [path])]


def list_files(folder: Path) -> list[Path]:
    """Every file of a folder and its subfolders, hidden ones left out, in the order of their names."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    found = [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not found:
        raise FileNotFoundError(f"{folder} has no files to predict; give a folder of pictures or recordings.")
    return sorted(found)


def _predict_with_torch(model: SpikingNetwork, inputs: list[Input], confidence: float | None) -> list[Prediction]:
    import torch

    from spikformer.models.inspection import eval_mode

    weight, resting = model.like, model.resting_readout().double().numpy(force=True)

    def answer(samples: np.ndarray) -> np.ndarray | AnytimeAnswers:
        if confidence is not None:
            return answer_with_model(model, samples, confidence)
        with torch.no_grad():
            readouts = model.forward_steps(torch.from_numpy(samples).to(weight.device, weight.dtype))
        return readouts.double().numpy(force=True)

    with eval_mode(model):
        return predict_inputs(answer, resting, model.card, inputs)


def answer_with_model(model: SpikingNetwork, samples: np.ndarray, confidence: float) -> AnytimeAnswers:
    """`Engine.answer_anytime` by a network in eval mode."""
    import torch

    weight = model.like

    @torch.no_grad()
    def step(frame: np.ndarray, state: StreamState) -> tuple[np.ndarray, StreamState]:
        logits, state = model.step(torch.from_numpy(frame).to(weight.device, weight.dtype), state)
        return logits.double().numpy(force=True), state

    def take(state: StreamState, indices: np.ndarray) -> StreamState:
        chosen = torch.from_numpy(indices).to(weight.device)
        assert state.voltages is not None  # a step was taken
        return state._replace(batch_size=len(indices), voltages=tuple(voltage[chosen] for voltage in state.voltages))

    stepper = Stepper(lambda frame: model.initial_state(len(frame)), step, take)
    time_steps = model.config.time_steps if samples.ndim == 4 else len(samples)
    resting = model.resting_readout().double().numpy(force=True)
    return answer_anytime(stepper, samples, time_steps, confidence, resting)
