"""Speed and memory of spikformer_4_384_cifar10, beside this machine's dense float32 GEMM rate in the same run.

    python benchmarks/bench_model.py             everything: about three minutes
    python benchmarks/bench_model.py --quick     fewer repeats

The share is what the network's multiply-accumulates, counted by torch's FLOP counter, would take at the GEMM rate,
over what they took. Each case has a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable

MODEL = "spikformer_4_384_cifar10"
CASES = {
    "eval, batch 1": {"batch_size": 1},
    "eval, batch 32": {"batch_size": 32},
    "train, batch 32": {"batch_size": 32, "train": True},
    **{f"eval, batch 8, T = {steps}": {"batch_size": 8, "time_steps": steps} for steps in (1, 2, 4, 8, 16)},
    **{f"eval, batch 8, N = {side * side // 16}": {"batch_size": 8, "image_size": side} for side in (16, 32, 48, 64)},
}
GOALS = {"eval, batch 32": 0.60, "train, batch 32": 0.55}
MEMORY_GOAL_GB = 5.0


def measure(batch_size: int, train: bool = False, repeats: int = 10, **overrides: int) -> dict[str, float]:
    """One case, in this process."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import spikformer as sf
    from spikformer.memory import keep_freed_memory

    keep_freed_memory()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = sf.create_model(MODEL, **overrides)
    height, width = model.config.image_size
    images, labels = torch.randn(batch_size, 3, height, width), torch.arange(batch_size) % 10
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def train_step() -> None:
        optimiser.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()

    def eval_step() -> None:
        with torch.no_grad():
            model(images)

    for _ in range(2 if train else 0):
        train_step()
    model.train(train)
    step = train_step if train else eval_step
    with FlopCounterMode(display=False) as counter:
        step()
    flops = counter.get_total_flops()

    matrix = torch.randn(2048, 2048)
    gemm_seconds = step_seconds = float("inf")
    for _ in range(repeats):  # interleaved, so that both see the same machine
        gemm_seconds = min(gemm_seconds, timed(lambda: matrix @ matrix), timed(lambda: matrix @ matrix))
        step_seconds = min(step_seconds, timed(step))
    gemm_rate = 2 * 2048**3 / gemm_seconds
    return {
        "images_per_second": batch_size / step_seconds,
        "latency_ms": step_seconds * 1e3,
        "gmacs_per_image": flops / 2 / batch_size / 1e9,
        "gemm_gflops": gemm_rate / 1e9,
        "share_of_gemm": flops / gemm_rate / step_seconds,
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def timed(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def in_its_own_process(case: str, repeats: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--case", case, "--repeats", str(repeats)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(**CASES[arguments.case], repeats=arguments.repeats)))
        return

    results = {}
    print(f"{MODEL}, float32, 2 threads, {platform.machine()}, {time.strftime('%Y-%m-%d')}")
    print(f"{'':24}{'img/s':>8}{'ms':>9}{'GMAC/img':>10}{'GEMM GFLOP/s':>14}{'share':>8}{'goal':>7}{'peak GB':>9}")
    for case in CASES:
        row = results[case] = in_its_own_process(case, 3 if arguments.quick else 10)
        goal = f"{GOALS[case]:.0%}" if case in GOALS else ""
        print(
            f"{case:24}{row['images_per_second']:8.1f}{row['latency_ms']:9.1f}{row['gmacs_per_image']:10.3f}"
            f"{row['gemm_gflops']:14.0f}{row['share_of_gemm']:8.0%}{goal:>7}{row['peak_memory_gb']:9.2f}",
            flush=True,
        )
    for axis in ("T", "N"):
        points = {
            int(case.split(" = ")[1]): row["latency_ms"] for case, row in results.items() if f" {axis} = " in case
        }
        fitted = exponent(points)
        results[f"growth in {axis}"] = {"exponent": fitted, "latency_ms": points}
        print(f"time grows as {axis}^{fitted:.2f} over {axis} = {', '.join(map(str, points))}")
    print(json.dumps(results))


def exponent(points: dict[int, float]) -> float:
    """Slope of log time over log size, by least squares: 1 is linear, 2 quadratic."""
    import math

    logs = [(math.log(size), math.log(latency)) for size, latency in points.items()]
    mean_x, mean_y = (sum(axis) / len(logs) for axis in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


if __name__ == "__main__":
    main()
