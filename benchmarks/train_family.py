"""Train small networks of five architectures for bench_family.py: T = 1 first, then T = 4 from those weights.

    python benchmarks/train_family.py --data DIR --output runs/family

All have about as many parameters as spikformer_small_cifar10, and see the same CIFAR-10 images in the same order: one
pass at T = 1, and a few more at T = 4. Two at a time, with one thread each. The same command again continues a run that
was stopped, and keeps those that have ended. Nothing is selected and the test split is not read.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

NAMES = ("maxformer", "spikformer", "cml_spikformer", "cml_spikingformer", "spike_driven_transformer")
"""The slowest first, so that no core is idle at the end."""
SETTINGS = {"epochs": 1, "warmup_epochs": 0.1, "validation_share": 0.01, "threads": 1, "save_minutes": 5.0}


def train_one(name: str, data: Path, output: Path, samples: tuple[int, int]) -> str:
    import torch

    from spikformer.analysis.architectures import sized_like
    from spikformer.data import open_for_model
    from spikformer.presets import get_preset
    from spikformer.runs.folder import Run
    from spikformer.runs.train import train

    torch.set_num_threads(1)
    began = time.perf_counter()
    lines = []
    for time_steps, count, rate, batch in ((1, samples[0], 2e-3, 64), (4, samples[1], 8e-4, 32)):
        folder = output / f"{name}_t{time_steps}"
        run = Run(folder)
        if not run.results_file.exists():
            like = get_preset("spikformer_small_cifar10").config.override(time_steps=time_steps)
            config = sized_like(like)[name]
            opened = replace(open_for_model(config, "cifar10", data), test=None)
            start = None if time_steps == 1 else output / f"{name}_t1" / "last.safetensors"
            fresh = {"model": config, "max_samples": count, "learning_rate": rate, "batch_size": batch, **SETTINGS}
            resumes = run.state.exists()
            settings = {"threads": 1} if resumes else {**fresh, "from_weights": start}
            recipe = None if resumes else "spikformer_small_cifar10"
            run = train(recipe, data=opened, output=folder, resume=resumes, **settings)
        assert run.results is not None
        share = run.results.last.validation_accuracy
        lines.append(f"T = {time_steps}: {share:.1%} on validation, {run.results.seconds:.0f} s")
    return f"{name}: {'; '.join(lines)}; {time.perf_counter() - began:.0f} s in all"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with CIFAR-10's files")
    parser.add_argument("--output", type=Path, default=Path("runs/family"))
    parser.add_argument("--samples", type=int, nargs=2, default=(24_000, 4_000), help="at T = 1 and at T = 4")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    given = parser.parse_args()
    work = partial(train_one, data=given.data, output=given.output, samples=tuple(given.samples))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for line in pool.map(work, given.only):
            print(line, flush=True)


if __name__ == "__main__":
    main()
