"""How early a network may answer: a confidence chosen on validation data, and what it gives and costs on test data."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from spikformer.analysis.anytime import AnytimeReport, ExitPoint, MeasuredExit, StepAnswers, choose_confidence
from spikformer.analysis.energy import measure_energy
from spikformer.data import DataSet, Loader
from spikformer.data.splits import spread_samples
from spikformer.engine import Engine, compile_engine
from spikformer.engine.anytime import largest_share, mean_readouts
from spikformer.errors import FieldError
from spikformer.io import processor_name
from spikformer.models import load
from spikformer.models.files import assemble, replace_card
from spikformer.models.inspection import unwrap
from spikformer.runs.trained import data_path, load_trained, open_data, weights_path
from spikformer.validation import check_at_least, check_probability

if TYPE_CHECKING:
    from torch import nn

    from spikformer.models import SpikingNetwork

CONFIDENCES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
_CURVE = (*np.arange(0.3, 0.9, 0.02).round(2).tolist(), *np.arange(0.9, 1, 0.005).round(3).tolist(), 0.999)
_BATCH = 128
_TIMED_BATCH = 32
_TIMED_SAMPLES, _TURNS = 64, 5
_ENERGY_SAMPLES, _ENERGY_BATCH = 128, 32


def anytime(
    model: nn.Module | str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | DataSet | None = None,
    tolerance: float = 0.002,
    confidences: Sequence[float] = CONFIDENCES,
    max_samples: int | None = None,
    threads: int | None = None,
    on_batch: Callable[[int], None] = lambda _: None,
) -> AnytimeReport:
    """Choose the confidence on the validation split, then measure it and `confidences` on the test split.

        model        a network, the path of weights or of a run folder, or a shipped name; the engine must run it
        data         a data set, or where its files are; by default those that the run was trained on
        tolerance    by how much the accuracy on the validation split may be below that of all steps, as a share
        max_samples  use at most so many of each split, taken from all over it
        threads      of the engine

    Milliseconds are of the engine: step by step, and for all steps side by side, in turns. Energy is counted on the
    network, of each group of samples that leave after the same step, run for as many steps.
    """
    confidences = [check_probability("confidences", each) for each in confidences]
    network, opened = open_anytime(model, data)
    if max_samples is not None:
        check_at_least("max_samples", max_samples, 1)
        for split in ("validation", "test"):
            opened = opened.with_split(split, spread_samples(opened.split(split), max_samples))
    engine = compile_engine(network, threads)
    held_out, _, _ = _answers(engine, opened, "validation", on_batch)
    chosen = choose_confidence(held_out, tolerance)
    answers, indices, silent = _answers(engine, opened, "test", on_batch)
    asked = sorted({*confidences, *([] if chosen is None else [chosen])})
    costs = _Costs(network, engine, opened, answers, indices, on_batch)
    all_steps, *exits = costs.measure([None, *asked])
    return AnytimeReport(
        confidence=chosen,
        tolerance=tolerance,
        validation=held_out.at(chosen),
        validation_all=held_out.at(None),
        curve=tuple(map(answers.at, _CURVE)),
        exits=tuple(exits),
        all_steps=all_steps,
        num_samples=len(indices),
        batch_size=costs.batch_size,
        num_threads=engine.num_threads,
        instructions=engine.instructions,
        machine=processor_name(),
        silent=silent,
    )


def open_anytime(
    model: nn.Module | str | os.PathLike[str], data: str | os.PathLike[str] | DataSet | None
) -> tuple[SpikingNetwork, DataSet]:
    """The network and its data; FieldError where there is nothing to choose, or to choose it on."""
    source = model if isinstance(model, str | os.PathLike) else None
    network = load_trained(model) if isinstance(model, str | os.PathLike) else unwrap(model, "anytime")
    if network.config.time_steps == 1:
        raise FieldError(
            "time_steps", "This network has one time step, so that no answer can end earlier; train one with more."
        )
    if not isinstance(data, DataSet):
        data = open_data(network, Path(data) if data is not None else None if source is None else data_path(source))
    if data.validation is None:
        raise FieldError(
            "validation",
            f"{data.name} has no validation split here, on which a confidence is chosen; train with --validation-share "
            "above 0, or give data that has one.",
        )
    data.split("test")
    return network, data


def store_confidence(path: str | os.PathLike[str], confidence: float | None) -> None:
    """Into the card of a weights file, or of the weights of a run folder; None takes out what it had."""
    path = weights_path(path)
    replace_card(path, replace(load(path).card, confidence=confidence))


def planned_samples(data: DataSet, max_samples: int | None, num_confidences: int = len(CONFIDENCES)) -> int:
    """How many samples `anytime` reports by `on_batch`, or a few more: for a progress bar."""
    counts = [min(len(data.split(split)), max_samples or len(data.split(split))) for split in ("validation", "test")]
    return sum(counts) + 2 * min(_TIMED_SAMPLES, counts[1]) + (num_confidences + 2) * min(_ENERGY_SAMPLES, counts[1])


def _answers(
    engine: Engine, data: DataSet, split: str, on_batch: Callable[[int], None]
) -> tuple[StepAnswers, np.ndarray, bool]:
    """Of all samples that can be read, with their indices, and whether the network is silent."""
    shares, correct, indices, silent = [], [], [], True
    resting = engine.resting_readout()
    for batch in Loader(data, split, _BATCH, training=False).epoch(0):
        readouts = engine.forward_steps(data.prepare(batch.samples))
        means = mean_readouts(readouts)
        shares.append(largest_share(means))
        correct.append(means.argmax(-1) == batch.labels.numpy())
        indices.append(batch.indices.numpy())
        silent = silent and bool((readouts == resting).all())
        on_batch(len(batch.labels) + len(batch.reasons))
    if not sum(map(len, indices)):
        raise FieldError("data", f"No sample of {data.name}, {split}, can be read; `spikformer data check` lists why.")
    return StepAnswers(np.concatenate(shares, 1), np.concatenate(correct, 1)), np.concatenate(indices), silent


class _Costs:
    """What samples of the test split cost that leave at some confidence, or take all steps."""

    def __init__(
        self,
        network: SpikingNetwork,
        engine: Engine,
        data: DataSet,
        answers: StepAnswers,
        indices: np.ndarray,
        on_batch: Callable[[int], None],
    ) -> None:
        self._network, self._engine, self._data, self._answers = network, engine, data, answers
        self._indices, self._on_batch = indices, on_batch
        self._known: dict[tuple[int, bytes], tuple[float, float]] = {}
        self.batch_size = min(_TIMED_BATCH, len(indices))

    def measure(self, confidences: Sequence[float | None]) -> list[MeasuredExit]:
        points = [self._answers.at(confidence) for confidence in confidences]
        energies = [self._energy_mj(point) for point in points]
        single, batched = (self._milliseconds(confidences, size) for size in (1, self.batch_size))
        return [
            MeasuredExit(point, *milliseconds, *energy)
            for point, energy, milliseconds in zip(points, energies, zip(single, batched, strict=True), strict=True)
        ]

    def _places(self, most: int) -> np.ndarray:
        """Samples that are as sure as all are: evenly taken in the order of their first answer's share, then mixed."""
        order = np.argsort(self._answers.shares[0], kind="stable")
        count = min(most, len(order))
        return np.random.default_rng(0).permutation(order[((np.arange(count) + 0.5) * len(order) / count).astype(int)])

    def _inputs(self, places: np.ndarray) -> Tensor:
        samples = self._data.split("test")
        return self._data.prepare(np.stack([samples[int(self._indices[place])] for place in places]))

    def _milliseconds(self, confidences: Sequence[float | None], batch_size: int) -> list[float]:
        """For one sample: of every batch the fastest call at each confidence, of calls that took turns."""
        places = self._places(_TIMED_SAMPLES)
        places = places[: len(places) // batch_size * batch_size]
        fastest = []
        for chunk in np.split(places, len(places) // batch_size):
            inputs = np.ascontiguousarray(self._inputs(chunk).numpy())
            turns = [[self._call_ms(inputs, each) for each in confidences] for _ in range(_TURNS)]
            fastest.append(np.min(turns, 0) / batch_size)
            self._on_batch(batch_size)
        return np.mean(fastest, 0).tolist()

    def _call_ms(self, inputs: np.ndarray, confidence: float | None) -> float:
        begin = time.perf_counter()
        if confidence is None:
            self._engine(inputs)
        else:
            self._engine.answer_anytime(inputs, confidence)
        return (time.perf_counter() - begin) * 1e3

    def _energy_mj(self, point: ExitPoint) -> tuple[float, float]:
        """By the paper's and the strict convention; groups that leave together count by their shares of the split."""
        places = self._places(_ENERGY_SAMPLES)
        steps = self._answers.num_steps(point.confidence)[places]
        counts = np.unique(steps).tolist()
        energies = [self._group_energy_mj(places[steps == count], count) for count in counts]
        weights = [point.leaving[count - 1] for count in counts]
        paper, strict = np.average(energies, axis=0, weights=weights).tolist()
        return paper, strict

    def _group_energy_mj(self, places: np.ndarray, num_steps: int) -> tuple[float, float]:
        """Of samples that leave together; many confidences share such a group, which is measured once."""
        key = num_steps, places.tobytes()
        if key in self._known:
            self._on_batch(len(places))
        else:
            report = measure_energy(*self._with_fewer_steps(places, num_steps), on_batch=self._on_batch)
            self._known[key] = report.energy_mj("paper"), report.energy_mj("strict")
        return self._known[key]

    def _with_fewer_steps(self, places: np.ndarray, num_steps: int) -> tuple[SpikingNetwork, list[Tensor]]:
        """The network with fewer steps, and batches of samples as it takes them."""
        config = self._network.config.override(time_steps=num_steps)
        network, weight = assemble(config, self._network.state_dict(), "The network"), self._network.like
        batches = []
        for begin in range(0, len(places), _ENERGY_BATCH):
            inputs = self._inputs(places[begin : begin + _ENERGY_BATCH]).to(weight.device, weight.dtype)
            batches.append(inputs[:num_steps] if self._data.events else inputs)
        return network, batches
