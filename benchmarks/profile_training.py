"""Where the time of a training iteration goes: by kind of operation, and how much of it is data.

    python benchmarks/profile_training.py cml_spikingformer_small_cifar10 --data DIR --precision bfloat16 --time-steps 1

Real samples, with the recipe's augmentation and optimiser. Shares are of CPU time under torch.profiler; the rate and
the time of the data alone are measured without it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from spikformer.data import Augmenter, Loader, open_for_model
from spikformer.data.augmentation.augmenter import mirrored_in
from spikformer.io import processor_name
from spikformer.runs.process import keep_freed_memory
from spikformer.training import Recipe, Trainer, build_fabric
from spikformer.training.progress import Iteration
from spikformer.training.recipes import get_recipe

KINDS = {
    "neurons": ("spikformer::", "_Eager"),
    "convolutions": ("conv",),
    "linear layers and attention": ("addmm", "aten::mm", "aten::bmm", "aten::matmul", "linear"),
    "norms": ("batch_norm",),
    "pools": ("max_pool",),
    "copies and casts": ("copy_", "aten::to", "clone", "contiguous", "aten::cat", "fill_", "zero_"),
    "augmentation": ("grid_sampler", "affine_grid"),
}
WARM_UP, MEASURED = 3, 12


def kind_of(event: FunctionEvent) -> str:
    """By the operator's name; whatever the optimiser calls is counted as the optimiser's."""
    parent: FunctionEvent | None = event
    while parent is not None:
        if parent.name.startswith("Optimizer.step"):
            return "optimiser"
        parent = parent.cpu_parent
    return next((kind for kind, parts in KINDS.items() if any(part in event.name for part in parts)), "the rest")


def iterations(recipe: Recipe, data: Path | None) -> Iterator[Iteration]:
    opened = open_for_model(recipe.model, recipe.data_set, data, validation_share=recipe.validation_share)
    trainer = Trainer(recipe, opened, build_fabric(recipe.precision, accelerator="cpu"))
    trainer.start()
    return (event for event in trainer.run() if isinstance(event, Iteration))


def data_seconds(recipe: Recipe, data: Path | None) -> float:
    """Reading and augmenting a batch, as the trainer does."""
    opened = open_for_model(recipe.model, recipe.data_set, data, validation_share=recipe.validation_share)
    augment, draw = Augmenter(recipe.augmentation, opened), np.random.default_rng(0)
    batches = Loader(opened, "train", recipe.batch_size, training=True).epoch(0)

    def load() -> None:
        batch = next(batches)
        augment(batch.samples, batch.labels, draw, turns=mirrored_in(0, batch.indices, recipe.seed))

    return fastest(load)


def fastest(run: Callable[[], object]) -> float:
    """Seconds of the fastest call, after a warm-up."""
    seconds = []
    for _ in range(WARM_UP + MEASURED):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds[WARM_UP:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--data", type=Path, help="folder with the data set's files")
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--time-steps", type=int, help="the recipe's by default")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()
    recipe = get_recipe(given.recipe)
    steps = given.time_steps or recipe.model.time_steps
    recipe = recipe.override(
        precision=given.precision,
        model={"time_steps": steps},
        step_schedule=(),
        image_schedule=(),
        loss=recipe.loss if steps > 1 else "mean_logit",
    )
    running = iterations(recipe, given.data)
    iteration = fastest(lambda: next(running))
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(MEASURED // 3):
            next(running)
    microseconds: dict[str, float] = defaultdict(float)
    for event in seen.events():
        microseconds[kind_of(event)] += event.self_cpu_time_total
    total = sum(microseconds.values())
    data = data_seconds(recipe, given.data)
    print(f"{given.recipe}, T = {steps}, {recipe.precision}, {given.threads} threads, {processor_name()}")
    print(f"{recipe.batch_size / iteration:.0f} images/s, {1e3 * iteration:.0f} ms an iteration of {recipe.batch_size}")
    print(f"reading and augmenting a batch: {1e3 * data:.1f} ms, {data / iteration:.1%} of an iteration")
    shares = {kind: spent / total for kind, spent in sorted(microseconds.items(), key=lambda each: -each[1])}
    for kind, share in shares.items():
        print(f"  {kind:30s}{share:6.1%}")
    row = {"recipe": given.recipe, "time_steps": steps, "precision": recipe.precision, "threads": given.threads}
    print(json.dumps(row | {"iteration_ms": 1e3 * iteration, "data_ms": 1e3 * data, "shares": shares}))


if __name__ == "__main__":
    main()
