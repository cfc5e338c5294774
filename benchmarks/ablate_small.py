"""What each trick of `cml_spikingformer_small_cifar10` is worth on CIFAR-10 at equal CPU time.

    python benchmarks/ablate_small.py --data DIR --seeds 0 1                  T = 1, ten minutes a run on one core
    python benchmarks/ablate_small.py --data DIR --seeds 0 1 --grid steps     T = 4, twenty
    python benchmarks/ablate_small.py --data DIR --seeds 0 1 --grid attention

Every row is the plain recipe with one change. A few timed iterations decide how many epochs of 12,000 images fit into
the budget, so that a cheap trick gets more of them. Two runs at a time, with one thread each; the same command resumes
and skips finished runs. Accuracies are of 2,000 held-out training images: the test split is not read.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from spikformer.config import ModelConfig, NetworkConfig, SpikingformerConfig
from spikformer.data.augmentation import Augmentation
from spikformer.training.recipe import Recipe

SAMPLES = 12_000
SIZES: dict[str, Any] = {"embed_dim": 256, "depth": 1, "num_heads": 8, "pool_stages": (False, True, False, True)}
PAPER = ModelConfig(**SIZES, time_steps=1)
MEMBRANE = SpikingformerConfig(**SIZES, time_steps=1)
PLAIN = Recipe(
    data_set="cifar10",
    model=PAPER,
    augmentation=Augmentation(
        operations=("translate_x", "translate_y"),
        num_operations=2,
        operation_probability=1.0,
        magnitude=2.0,
        magnitude_std=1.0,
        label_smoothing=0.1,
    ),
    learning_rate=2e-3,
    final_learning_rate=0.0,
    warmup_epochs=0.5,
    validation_share=0.04,
    max_samples=SAMPLES,
)
Row = tuple[NetworkConfig, dict[str, Any]]


def rows(grid: str, teacher: Path | None) -> dict[str, Row]:
    """The network and the recipe settings of every row of a grid."""
    if grid == "attention":
        variants = {
            word: PAPER.override(attention=word, pool_after="norm") for word in ("ssa", "softmax", "none", "random")
        }
        return {word: (config, {"optimiser": "muon", "learning_rate": 1e-2}) for word, config in variants.items()}
    if grid == "steps":
        four = MEMBRANE.override(time_steps=4, pool_after="norm")
        schedule = {"step_schedule": (1, 1, 1, 4)}
        return {
            "T = 4": (four, {}),
            "TET": (four, {"loss": "tet"}),
            "step schedule": (four, schedule),
            "step schedule, TET": (four, {"loss": "tet"} | schedule),
        }
    alternating = replace(PLAIN.augmentation, flip=0.0, alternate_flip=True)
    tricks: dict[str, Row] = {
        "paper's residual": (PAPER, {}),
        "pool before neuron": (PAPER.override(pool_after="norm"), {}),
        "membrane residual": (MEMBRANE, {}),
        "membrane, pool before": (MEMBRANE.override(pool_after="norm"), {}),
        "PLIF": (PAPER.override(neuron="plif"), {}),
        "Muon": (PAPER, {"optimiser": "muon", "learning_rate": 1e-2}),
        "whitened first layer": (PAPER, {"whiten": True}),
        "alternating flip": (PAPER, {"augmentation": alternating}),
        "growing images": (PAPER, {"image_schedule": (24, 28, 32)}),
        "EMA": (PAPER, {"ema_decay": 0.99}),
        "ANN twin": (PAPER.override(neuron="relu"), {}),
    }
    if teacher is not None:
        tricks["distillation"] = (PAPER, {"distillation": 0.5})
    return tricks


def run_one(name: str, row: Row, seed: int, data: Path, output: Path, minutes: float, teacher: Path | None) -> None:
    """Train a row for the budget, unless that is done."""
    import torch

    from spikformer.runs.folder import Run
    from spikformer.runs.train import train

    torch.set_num_threads(1)
    folder = folder_of(output, name, seed)
    if Run(folder).results_file.exists():
        return
    model, settings = row
    recipe = PLAIN.override(model=model, seed=seed, **settings)
    taught = teacher if recipe.distillation else None
    if Run(folder).state.exists():
        train(None, data=data, output=folder, resume=True, threads=1)
        return
    epochs = max(2, round(60 * minutes / seconds_of_epoch(recipe, data, taught)))
    train(recipe.override(epochs=epochs), data=data, output=folder, teacher=taught, threads=1)


def folder_of(output: Path, name: str, seed: int) -> Path:
    return output / name.replace(" ", "_").replace(",", "") / f"seed_{seed}"


def seconds_of_epoch(recipe: Recipe, data: Path, teacher: Path | None) -> float:
    """The mean, estimated by a few iterations at every stage of its schedules."""
    from spikformer.data import open_for_model
    from spikformer.models import load
    from spikformer.training import Trainer, build_fabric
    from spikformer.training.progress import Iteration

    fabric, taught = build_fabric("float32", accelerator="cpu"), None if teacher is None else load(teacher)
    stages = [(size, steps) for size in recipe.image_schedule or (None,) for steps in recipe.step_schedule or (None,)]
    rates = []
    for size, steps in stages:
        schedules: dict[str, Any] = {"image_schedule": (), "step_schedule": ()}
        model = recipe.model if steps is None else recipe.model.override(time_steps=steps)
        loss = recipe.loss if model.time_steps > 1 else "mean_logit"
        if size is not None:
            model = model.override(image_size=(size, size))
        timed = recipe.override(model=model, loss=loss, whiten=False, epochs=1, **schedules)
        opened = open_for_model(model, recipe.data_set, data, validation_share=recipe.validation_share)
        trainer = Trainer(timed, opened, fabric, teacher=taught)
        trainer.start()
        running = (event for event in trainer.run() if isinstance(event, Iteration))
        rates.append(max(next(running).samples_per_second for _ in range(5)))
    return SAMPLES * fmean(1 / rate for rate in rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with CIFAR-10's files")
    parser.add_argument("--grid", choices=("tricks", "steps", "attention"), default="tricks")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1))
    parser.add_argument("--minutes", type=float, help="of a run on one core; by default 10, or 20 with T = 4")
    parser.add_argument("--teacher", type=Path, help="weights to distil from, which adds a row")
    parser.add_argument("--output", type=Path, default=Path("runs/ablate_small"))
    parser.add_argument("--only", nargs="+", help="names of rows")
    given = parser.parse_args()
    minutes = given.minutes or (20.0 if given.grid == "steps" else 10.0)
    chosen = {
        name: row for name, row in rows(given.grid, given.teacher).items() if not given.only or name in given.only
    }
    folder = given.output / given.grid
    began = time.perf_counter()
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        jobs = [
            pool.submit(run_one, name, row, seed, given.data, folder, minutes, given.teacher)
            for seed in given.seeds
            for name, row in chosen.items()
        ]
        for job in jobs:
            job.result()
    report(folder, chosen, given.seeds)
    print(f"{(time.perf_counter() - began) / 60:.0f} minutes in all")


def report(folder: Path, chosen: dict[str, Row], seeds: list[int]) -> None:
    """The table, then one line of JSON."""
    from spikformer.runs.folder import Run

    records = []
    print(f"{'trick':24s}{'validation':>18s}{'minutes':>9s}{'passes':>8s}")
    for name in chosen:
        runs = [Run(folder_of(folder, name, seed)) for seed in seeds]
        finished = [(run.results, run.recipe) for run in runs if run.results is not None]
        shares = [results.last.validation_accuracy or 0.0 for results, _ in finished]
        spent = fmean(results.seconds for results, _ in finished) / 60
        passes = fmean(recipe.epochs for _, recipe in finished)
        spread = stdev(shares) if len(shares) > 1 else 0.0
        print(f"{name:24s}{fmean(shares):10.2%} ± {spread:5.2%}{spent:9.1f}{passes:8.1f}")
        records.append({"trick": name, "validation": shares, "minutes": spent, "passes": passes})
    print(json.dumps(records))


if __name__ == "__main__":
    main()
