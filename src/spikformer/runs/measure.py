"""Trained weights over samples of their data: batches, what an inference costs, and single samples while watched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spikformer.analysis.energy import (
    CONVENTIONS,
    HOROWITZ_45NM,
    Constants,
    EnergyReport,
    audit,
    energy_figure,
    measure_energy,
)
from spikformer.analysis.firing import measure_firing
from spikformer.analysis.recorder import Record, mapped_layers, record
from spikformer.data import DataSet, read_sample
from spikformer.errors import FieldError
from spikformer.models import SpikingNetwork
from spikformer.runs.trained import data_path, load_trained, open_data
from spikformer.training import choose_device, is_silent
from spikformer.validation import Accelerator
from spikformer.visualise.attention import BlockMaps, Shown, to_grid

COST_SAMPLES = 256  # firing rates hardly move beyond
_COST_BATCH = 32


def open_measured(
    weights: str | os.PathLike[str], data: Path | None = None, accelerator: Accelerator = "auto"
) -> tuple[SpikingNetwork, DataSet]:
    """The model of a weights file or run folder, on its device, and the data it was trained on."""
    device = choose_device(accelerator)
    model = load_trained(weights)
    return model.to(device), open_data(model, data or data_path(weights))


def batches(model: SpikingNetwork, data: DataSet, split: str, max_samples: int, batch_size: int) -> Iterator[Tensor]:
    """See `prepared_batches`; on the model's device, in its dtype."""
    weight = model.like
    for inputs in prepared_batches(data, split, max_samples, batch_size):
        yield inputs.to(weight.device, weight.dtype)


def prepared_batches(data: DataSet, split: str, max_samples: int, batch_size: int) -> Iterator[Tensor]:
    """Samples from all over a split, always the same, preprocessed; unreadable ones are left out."""
    samples = data.split(split)
    count = min(max_samples, len(samples))
    indices = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    for start in range(0, count, batch_size):
        read = []
        for index in indices[start : start + batch_size]:
            try:
                read.append(samples[int(index)])
            except (ValueError, OSError):
                continue
        if read:
            yield data.prepare(np.stack(read))


def held_out_split(data: DataSet) -> str:
    """The split to measure costs on: test, or the next best that a data set has."""
    return next(name for name in ("test", "validation", "train") if name in data.splits)


def measure_cost(
    weights: str | os.PathLike[str], data: Path | None = None, accelerator: Accelerator = "auto"
) -> dict[str, float]:
    """Parameters, and operations and energy of one sample by the paper's convention; its energy by the others, too.

    Those of attention are of one block, as in the paper's Tab. 1; a network without any has none.
    """
    model, opened = open_measured(weights, data, accelerator)
    split = held_out_split(opened)
    report = measure_energy(model, batches(model, opened, split, COST_SAMPLES, _COST_BATCH))
    attention = [layer.operations("paper") for layer in report.layers if layer.kind == "attention"]
    blocks = max(1, len(attention))
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "operations": sum(report.operations("paper")),
        **{energy_figure(word): report.energy_mj(word) for word in CONVENTIONS},
        "attention_operations": sum(map(sum, attention)) / blocks,
        "attention_energy_mj": sum(map(report.energy_pj, attention)) / blocks / 1e9,
    }


def measure_runtimes(
    model: SpikingNetwork,
    samples: Iterable[Tensor],
    constants: Constants = HOROWITZ_45NM,
    on_batch: Callable[[int], None] = lambda _: None,
) -> tuple[EnergyReport, EnergyReport]:
    """The energy in PyTorch and in the compiled engine, which may multiply Q, K and V in another order."""
    firing = measure_firing(model, samples, on_batch)
    return audit(model, firing, constants, runtime="torch"), audit(model, firing, constants, runtime="engine")


@dataclass(frozen=True)
class Watched:
    """A sample, and what the network did with it."""

    sample: np.ndarray
    """As the set has it: uint8 [C, H, W], or counts of events [T, 2, H, W]."""
    source: str
    label: str | None
    """Its class, if that is known."""
    answer: str | None
    """None if no spike reached the head."""
    confidence: float
    seen: Record

    @property
    def title(self) -> str:
        truth = f"{self.label}, " if self.label is not None else ""
        if self.answer is None:
            return f"{self.source}: {truth}no answer (the network is silent)"
        return f"{self.source}: {truth}classified as {self.answer} ({self.confidence:.0%})"


def watch_files(model: SpikingNetwork, files: Sequence[Path]) -> Iterator[Watched]:
    """Pictures or recordings, brought into the form of the data that the model was trained on."""
    seen = model.card.known_preprocessing
    for path in files:
        sample = read_sample(path, seen)
        yield _watch(model, seen.to_inputs(sample[None]), model.card.class_names, sample, path.name, None)


def watch_samples(model: SpikingNetwork, data: DataSet, split: str, indices: Sequence[int]) -> Iterator[Watched]:
    """Samples of a split, by their indices."""
    samples = data.split(split)
    for index in indices:
        if not 0 <= index < len(samples):
            raise FieldError(
                "index", f"{data.name} has {len(samples)} samples for {split}, counted from 0; got {index}."
            )
        label = data.class_names[int(samples.labels[index])]
        sample = samples[index]
        inputs = data.preprocessing.to_inputs(sample[None])
        yield _watch(model, inputs, data.class_names, sample, f"{split} sample {index}", label)


@torch.no_grad()
def _watch(
    model: SpikingNetwork,
    inputs: np.ndarray,
    class_names: Sequence[str],
    sample: np.ndarray,
    source: str,
    label: str | None,
) -> Watched:
    weight = model.like
    with record(model.eval()) as seen:
        readouts = model.forward_steps(torch.from_numpy(inputs).to(weight.device, weight.dtype))
    if is_silent(readouts, model.resting_readout()):
        return Watched(sample, source, label, None, 0.0, seen)
    shares = readouts.mean(0)[0].float().softmax(0)
    answer = int(shares.argmax())
    return Watched(sample, source, label, class_names[answer], float(shares[answer]), seen)


_MASKED: dict[str, Shown] = {"query": "masked Q", "key": "masked K", "value": "masked V"}


def attention_maps(model: SpikingNetwork, watched: Watched, head: int | None = None) -> list[BlockMaps]:
    """What every block that has attention attends to: see `Record.token_maps`, of one head or the mean of all."""
    heads = slice(None) if head is None else slice(head - 1, head)
    numbers = {layer: block for block, layer in mapped_layers(model).items()}
    height, width = watched.sample.shape[-2:]
    maps = []
    for layer, found in watched.seen.token_maps().items():
        tokens = found[:, 0, heads].float().mean(1).numpy(force=True)  # [T, N]
        mask = watched.seen.masks.get(layer)
        shown: Shown = "attention" if mask is None else "mask" if mask.over_tokens else _MASKED[mask.operand]
        maps.append(BlockMaps(numbers[layer], shown, to_grid(tokens, height, width)))
    return maps
