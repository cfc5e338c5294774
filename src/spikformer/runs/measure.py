"""Trained weights over samples of their data: batches of them, and what an inference costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from torch import Tensor

from spikformer.analysis.energy import measure_energy
from spikformer.data import DataSet
from spikformer.models import Spikformer
from spikformer.runs.folder import Run
from spikformer.runs.trained import data_path, load_trained, open_data
from spikformer.training import choose_device

Accelerator = Literal["auto", "cpu", "gpu"]
_COST_SAMPLES = 256  # firing rates hardly move beyond
_COST_BATCH = 32


def open_measured(weights: Path, data: Path | None = None, accelerator: Accelerator = "auto") -> tuple[Spikformer, DataSet]:
    """The model of a weights file or run folder, on its device, and the data it was trained on."""
    device = choose_device(accelerator)
    model = load_trained(weights)
    return model.to(device), open_data(model, data or data_path(weights))


def batches(model: Spikformer, data: DataSet, split: str, max_samples: int, batch_size: int) -> Iterator[Tensor]:
    """See `prepared_batches`; on the model's device, in its dtype."""
    weight = model.head.weight
    for inputs in prepared_batches(data, split, max_samples, batch_size):
        yield inputs.to(weight.device, weight.dtype)


def prepared_batches(data: DataSet, split: str, max_samples: int, batch_size: int) -> Iterator[Tensor]:
    """Samples from all over a split, always the same, preprocessed; unreadable ones are left out."""
    samples = data.split(split)
    count = min(max_samples, len(samples))
    places = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    for start in range(0, count, batch_size):
        read = []
        for place in places[start : start + batch_size]:
            try:
                read.append(samples[int(place)])
            except (ValueError, OSError):
                continue
        if read:
            yield data.prepare(np.stack(read))


def measure_cost(run: Run, data: Path | None = None, accelerator: Accelerator = "auto") -> dict[str, float]:
    """Parameters, and operations and energy of one sample by the paper's convention.

    Those of attention are of one block, as in the paper's Tab. 1; a network without any has none.
    """
    model, opened = open_measured(run.weights, data, accelerator)
    split = next(name for name in ("test", "validation", "train") if name in opened.splits)
    report = measure_energy(model, batches(model, opened, split, _COST_SAMPLES, _COST_BATCH))
    attention = [layer.operations("paper") for layer in report.layers if layer.kind == "attention"]
    blocks = max(1, len(attention))
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "operations": sum(report.operations("paper")),
        "energy_mj": report.energy_mj("paper"),
        "attention_operations": sum(map(sum, attention)) / blocks,
        "attention_energy_mj": sum(map(report.energy_pj, attention)) / blocks / 1e9,
    }
