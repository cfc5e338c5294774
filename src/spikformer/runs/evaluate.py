"""Evaluate a network, weights, an engine or a run on a split of its data: `sf.evaluate("runs/digits").top1`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from spikformer.data import DataSet
from spikformer.data.splits import spread_samples
from spikformer.engine import Engine
from spikformer.errors import FieldError
from spikformer.models.inspection import unwrap
from spikformer.runs.trained import data_path, load_answering, open_data
from spikformer.training import EvalOptions, Evaluation, choose_device, evaluate_answers
from spikformer.training import evaluate as evaluate_model
from spikformer.validation import Accelerator, check_at_least

if TYPE_CHECKING:
    from spikformer.models import SpikingNetwork


def evaluate(
    model: nn.Module | Engine | str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | DataSet | None = None,
    split: str = "test",
    max_samples: int | None = None,
    batch_size: int = 128,
    workers: int = 0,
    strict: bool = False,
    tta: bool = False,
    accelerator: Accelerator | None = None,
    on_batch: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Accuracy, loss, confusion and accuracy after each time step, on a split.

        model        a network, an engine, or the path of either or of a run folder
        data         a data set, or where its files are; by default those that the run was trained on
        max_samples  measure at most so many, taken from all over the split
        tta          also answer by the mean over shifted and mirrored views, in `Evaluation.tta_top1`
        accelerator  where to compute; a network in memory stays on its device by default

    A network of your own needs a card that names its data set, or `data` as a data set.
    """
    for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("max_samples", max_samples, 1)):
        check_at_least(name, value, least)
    network, opened = open_evaluated(model, data)
    if max_samples is not None:
        opened = opened.with_split(split, spread_samples(opened.split(split), max_samples))
    options = EvalOptions(batch_size=batch_size, workers=workers, strict=strict, tta=tta, on_batch=on_batch)
    if isinstance(network, Engine):
        if accelerator == "gpu":
            raise FieldError(
                "accelerator", "An engine runs on the CPU; leave the accelerator out, or evaluate the weights instead."
            )
        engine = network

        def answer(inputs: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(engine.forward_steps(inputs))

        return evaluate_answers(answer, opened, split, torch.from_numpy(engine.resting_readout()), options)
    if accelerator is not None:
        network.to(choose_device(accelerator))
    return evaluate_model(network, opened, split, options)


def open_evaluated(
    model: nn.Module | Engine | str | os.PathLike[str], data: str | os.PathLike[str] | DataSet | None
) -> tuple[SpikingNetwork | Engine, DataSet]:
    """The network and its data, opened where they are paths."""
    source = model if isinstance(model, str | os.PathLike) else None
    network: SpikingNetwork | Engine
    if isinstance(model, str | os.PathLike):
        network = load_answering(model)
    else:
        network = model if isinstance(model, Engine) else unwrap(model, "evaluate")
    if isinstance(data, DataSet):
        return network, data
    where = Path(data) if data is not None else (data_path(source) if source is not None else None)
    return network, open_data(network, where)
