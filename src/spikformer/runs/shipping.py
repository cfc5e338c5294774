"""Networks to publish: weights whose card says how they were trained, what they score, what they cost and their limits.

    ship("runs/digits", "digits.safetensors", licence="Apache-2.0", limits="Digits of 8×8 pixels alone.")

The networks of `spikformer.weights` are such files; `list_shipped` reads their cards without torch.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any

from spikformer.analysis.energy import CONVENTIONS, energy_figure
from spikformer.card import ModelCard, Result
from spikformer.config import NetworkConfig
from spikformer.engine.lowering import from_weights
from spikformer.io import processor_name
from spikformer.weights import find_weights, list_weights


@dataclass(frozen=True)
class Shipped:
    """A network that comes with the package."""

    name: str
    config: NetworkConfig
    card: ModelCard
    num_bytes: int


def list_shipped(pattern: str = "*") -> list[Shipped]:
    """What the cards of the package's networks say."""
    found = []
    for name in list_weights(pattern):
        path = find_weights(name)
        compiled = from_weights(path)
        assert compiled.config is not None  # every weights file has one
        found.append(Shipped(name, compiled.config, compiled.card, path.stat().st_size))
    return found


def ship(
    weights: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    licence: str,
    limits: str,
    data: str | os.PathLike[str] | None = None,
    confidence: float | None = None,
    half: bool = False,
) -> ModelCard:
    """Measure a run's weights on the test split and write them with a card that says so, which is returned.

    Accuracy after every time step, energy by each convention and the engine's time of one sample, each with the command
    that measures it again. `confidence` is what `spikformer anytime` chose on validation; by default the card's own.
    `half` stores float16, at half the size; the rounded weights are what is measured.
    """
    from spikformer.models import load, save
    from spikformer.runs.trained import data_path, weights_path

    path, output = weights_path(weights), Path(output)
    where = data_path(path) if data is None else Path(data)
    model = load(path)
    if half:
        model = model.half()
    with TemporaryDirectory() as folder:
        measured = Path(folder) / output.name
        save(model, measured)
        results = (*_training(path), *_measured(measured, where))
    confidence = model.card.confidence if confidence is None else confidence
    card = replace(model.card, results=results, licence=licence, limits=limits, confidence=confidence)
    save(model, output, card)
    return card


def _training(path: Path) -> list[Result]:
    """How the weights came about: the time it took, on which processor, and the command."""
    from spikformer.runs.folder import Run
    from spikformer.training.recipes import get_recipe, list_recipes

    run = Run(path.parent)
    if run.results is None:
        return []
    name = run.description.recipe
    command = f'sf.train("{name}", …) with the settings of this card'
    if name in list_recipes() and type(run.recipe.model) is type(get_recipe(name).model):  # else no flags describe it
        changed = run.recipe.settings_unlike(get_recipe(name))
        more = ["--data DIR"] if run.description.data is not None else []
        command = " ".join(["spikformer train", name, *more, *(_flag(*each) for each in changed.items())])
    return [_result("training_seconds", "train", run.results.seconds, command, machine=True)]


def _flag(setting: str, value: Any) -> str:
    """A setting such as model.time_steps as the command takes it."""
    part, _, name = setting.replace("_", "-").rpartition(".")
    prefix = f"--{part}." if part else "--"
    if isinstance(value, bool):
        return f"{prefix}{'' if value else 'no-'}{name}"
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join([f"{prefix}{name}", *(quote(str(each)) for each in values)])


def _measured(path: Path, where: Path | None) -> list[Result]:
    """What weights score and cost on the data in a folder, or on an embedded set."""
    from spikformer.runs.bench import engine_latency_ms
    from spikformer.runs.evaluate import evaluate
    from spikformer.runs.measure import COST_SAMPLES, measure_cost

    name, more = path.name.removesuffix(".safetensors"), "" if where is None else " --data DIR"
    found, cost = evaluate(path, data=where), measure_cost(path, where)
    evaluated, counted = (
        f"spikformer evaluate {name}{more}",
        f"spikformer energy {name}{more} --max-samples {COST_SAMPLES}",
    )
    results = [_result("accuracy", "test", found.top1, evaluated)]
    results += [
        _result(f"accuracy_after_step_{step}", "test", share, evaluated)
        for step, share in enumerate(found.after_steps, 1)
    ]
    results += [_result(f"{word}_energy_mj", "test", cost[energy_figure(word)], counted) for word in CONVENTIONS]
    latency = engine_latency_ms(path, where)
    if latency is not None:
        timed = f"spikformer bench {name}{more} --threads 1"
        results.append(_result("engine_latency_ms", "test", latency, timed, machine=True))
    return results


def _result(metric: str, split: str, value: float, command: str, *, machine: bool = False) -> Result:
    today = date.today().isoformat()
    where = processor_name() if machine else None
    return Result(metric=metric, split=split, value=value, date=today, command=command, machine=where)
