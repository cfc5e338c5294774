"""Runs as a report knows them, of tiny networks that never were trained."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spikformer as sf
from spikformer.analysis.energy import EnergyReport, audit
from spikformer.analysis.firing import FiringReport, measure_firing
from spikformer.analysis.traces import LayerTraces
from spikformer.models import Spikformer
from spikformer.training.evaluation import Evaluation
from spikformer.visualise.attention import BlockMaps
from spikformer.visualise.report import Report, ReportedRun, Sample, Weights

STEPS = 4


def history(count: int, validated: bool = True) -> list[dict[str, float]]:
    rows = [
        {"epoch": n, "train_loss": 2.0 / n, "train_accuracy": 0.5, "seconds": 30.0 * n} for n in range(1, count + 1)
    ]
    return [row | ({"validation_loss": 1.0, "validation_accuracy": 0.6} if validated else {}) for row in rows]


def weights(kind: str, epoch: int, accuracy: float) -> Weights:
    digit = "a" if kind == "last" else "b"
    return Weights(kind, epoch, 64 * digit, train_loss=2.0 / epoch, accuracy=accuracy, validation_accuracy=0.6)


def evaluation(confusion: list[list[int]]) -> Evaluation:
    return Evaluation(
        loss=0.4321,
        top1=0.875,
        top5=1.0,
        after_steps=[0.25, 0.5, 0.75, 0.875],
        confusion=confusion,
        num_samples=16,
        unreadable=0,
        silent=False,
    )


@cache
def measured(
    events: bool, overrides: tuple[tuple[str, Any], ...]
) -> tuple[Spikformer, Tensor, FiringReport, EnergyReport]:
    """A network, what it saw, how it fired, what that costs."""
    torch.manual_seed(0)
    network = sf.create_model("spikformer_tiny_digits", in_channels=2 if events else 1, **dict(overrides))
    inputs = torch.randint(0, 4, (STEPS, 4, 2, 8, 8) if events else (4, 1, 8, 8)).float()
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            norm.momentum = 1.0  # one pass, and every layer knows its inputs well enough to fire
    network(inputs)
    firing = measure_firing(network.eval(), [inputs])
    return network, inputs, firing, audit(network, firing)


def attended(num_blocks: int, num_steps: int) -> list[BlockMaps]:
    return [BlockMaps(block, "attention", np.random.rand(num_steps, 4, 4)) for block in range(1, num_blocks + 1)]


@pytest.fixture(scope="session")
def make_run() -> Callable[..., ReportedRun]:
    """A run of two epochs on four samples; `model` overrides the network, the rest any field of the run."""

    def make(model: dict[str, Any] | None = None, events: bool = False, **fields: Any) -> ReportedRun:
        network, inputs, firing, energy = measured(events, tuple((model or {}).items()))
        pictures = inputs.transpose(0, 1).numpy() if events else (60 * inputs).byte().numpy()
        samples = [
            Sample(picture, f"test sample {n}", "cat", "dog" if n else "cat", 0.75, attended(2, STEPS))
            for n, picture in enumerate(pictures[:2])
        ]
        names = fields.pop("class_names", ("cat", "dog", "owl"))
        confusion = fields.pop("confusion", np.diag([8, 6, 0][: len(names)] + [1] * (len(names) - 3)).tolist())
        traces = LayerTraces(
            layer="blocks.1.attention.neuron",
            num_neurons=1024,
            raster=np.random.rand(STEPS, 12) > 0.5,
            membranes=np.random.rand(STEPS, 2),
            spikes=np.random.rand(STEPS, 2) > 0.5,
            names=["neuron 3", "neuron 7"],
            v_threshold=0.5,
            v_reset=0.0,
        )
        values: dict[str, Any] = {
            "name": "first",
            "recipe": "spikformer_tiny_digits",
            "data": "digits",
            "events": events,
            "class_names": names,
            "num_parameters": sum(parameter.numel() for parameter in network.parameters()),
            "num_train_samples": 1295,
            "time_steps": firing.time_steps,
            "planned_epochs": 2,
            "history": history(2),
            "last": weights("last", 2, 0.8125),
            "best": weights("best", 1, 0.875),
            "split": "test",
            "evaluation": evaluation(confusion),
            "firing": firing,
            "energy": energy,
            "samples": samples,
            "traces": traces if firing.outputs else None,
            "stem_maps": {"stem.stages.0.neuron": np.random.randint(0, 5, (STEPS, 8, 8))},
            "settings": {"data_set": "digits", "seed": 7, "model": network.config.to_dict(), "augmentation": {}},
            "environment": {"torch": "2.x", "command": ["spikformer", "train", "two words"]},
        }
        return ReportedRun(**values | fields)

    return make


@pytest.fixture(scope="session")
def report_of() -> Callable[..., Report]:
    def make(*runs: ReportedRun) -> Report:
        return Report(runs, version="1.2.3", made="2026-02-03 04:05")

    return make
