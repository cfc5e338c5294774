"""What a report says, as plain data: measured elsewhere, drawn and laid out by the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spikformer.analysis.energy import EnergyReport
from spikformer.analysis.firing import FiringReport
from spikformer.analysis.traces import LayerTraces
from spikformer.errors import FieldError
from spikformer.paper import PaperRow
from spikformer.training.evaluation import Evaluation
from spikformer.visualise.attention import BlockMaps


@dataclass(frozen=True)
class Weights:
    """One file of weights of a run."""

    kind: str
    """The "last" finished epoch, or the one that was "best" on validation."""
    epoch: int
    sha256: str
    train_loss: float
    accuracy: float
    """On the split that the report is about."""
    validation_accuracy: float | None
    """As training found it; None where nothing was held out."""

    @property
    def file_name(self) -> str:
        return f"{self.kind}.safetensors"


@dataclass(frozen=True)
class Sample:
    """One input, what the network took it for, and where it looked."""

    picture: np.ndarray
    """An image uint8 [C, H, W], or counts of events [T, 2, H, W]."""
    source: str
    label: str
    answer: str | None
    """None if no spike reached the head."""
    confidence: float
    attention: Sequence[BlockMaps]
    """Of every block that has attention."""

    @property
    def events(self) -> bool:
        return self.picture.ndim == 4


@dataclass(frozen=True)
class ReportedRun:
    """One run: what it was, and all that was measured on its weights."""

    name: str
    recipe: str
    data: str
    events: bool
    class_names: Sequence[str]
    num_parameters: int
    time_steps: int
    planned_epochs: int
    history: Sequence[Mapping[str, float]]
    """A row of metrics for each finished epoch."""
    last: Weights
    best: Weights | None
    """None where nothing was held out to choose an epoch by."""
    split: str
    """Of the data that everything was measured on."""
    evaluation: Evaluation
    """Of the best weights, or the last; as all that follows."""
    firing: FiringReport
    energy: EnergyReport
    samples: Sequence[Sample]
    traces: LayerTraces | None
    """Of one layer while the network saw the first sample; None where no neuron spikes, or no sample is shown."""
    stem_maps: Mapping[str, np.ndarray]
    """What the stem's layers fired at that sample, summed over channels, [T, H, W]."""
    settings: Mapping[str, Any]
    """The recipe, with the model's and the augmentation's settings inside."""
    environment: Mapping[str, Any]
    num_train_samples: int
    paper: PaperRow | None = None
    network: str | None = None
    """What people call it, where the recipe is of a network of another architecture."""
    page: str | None = None
    """Where its browser page is, as an address relative to the report; None if it has none."""

    def __post_init__(self) -> None:
        if not self.history:
            raise FieldError("history", f"The run {self.name} has no finished epoch to report.")
        rows, names = len(self.evaluation.confusion), len(self.class_names)
        if rows != names:
            raise FieldError(
                "class_names",
                f"The run {self.name} names {names} classes, and its confusion has {rows}; name all of them.",
            )

    @property
    def weights(self) -> list[Weights]:
        return [self.last, self.best] if self.best else [self.last]

    @property
    def shown(self) -> Weights:
        """Those that everything was measured on."""
        return self.best or self.last

    @property
    def spikes(self) -> bool:
        """Whether it is a spiking network at all."""
        return bool(self.firing.outputs)

    @property
    def finished(self) -> bool:
        return len(self.history) >= self.planned_epochs

    @property
    def seconds(self) -> float | None:
        """Of training, as far as it was written down."""
        return self.history[-1].get("seconds")


@dataclass(frozen=True)
class Report:
    """Everything on one page."""

    runs: Sequence[ReportedRun]
    version: str
    """Of the software that measured."""
    made: str
    """When."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise FieldError("runs", "A report needs a run; give at least one.")
        names = [run.name for run in self.runs]
        if len(set(names)) < len(names):
            raise FieldError("runs", f"Runs of a report have names of their own, got {', '.join(names)}.")
