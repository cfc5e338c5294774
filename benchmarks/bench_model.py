"""Speed and memory of spikformer_4_384_cifar10, beside this machine's dense float32 GEMM rate in the same run.

    python benchmarks/bench_model.py             everything: about three minutes
    python benchmarks/bench_model.py --quick     fewer repeats

The share is what the network's multiply-accumulates, counted by torch's FLOP counter, would take at the GEMM rate,
over what they took. Each case has a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

MODEL = "spikformer_4_384_cifar10"
CASES = {
    "eval, batch 1": {"batch_size": 1},
    "eval, batch 32": {"batch_size": 32},
    "train, batch 32": {"batch_size": 32, "train": True},
    **{f"eval, batch 8, T = {steps}": {"batch_size": 8, "time_steps": steps} for steps in (1, 2, 4, 8, 16)},
    **{f"eval, batch 8, N = {side * side // 16}": {"batch_size": 8, "image_size": side} for side in (16, 32, 48, 64)},
}
GOALS = {"eval, batch 32": "60 %", "train, batch 32": "55 %, 5.0 GB"}
ORDERS = {"(Q Kᵀ) V": "query_key_first", "Q (Kᵀ V)": "key_value_first"}
TOKENS = (256, 512, 1024, 2048)


def measure(batch_size: int, train: bool = False, repeats: int = 10, **overrides: int) -> dict[str, float]:
    """One case, in this process."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import spikformer as sf
    from spikformer.runs.process import keep_freed_memory

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

    with torch.no_grad():  # norms see data, so that every layer fires
        for _ in range(10):
            model(images[:8])
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB
    return {
        "images_per_second": batch_size / step_seconds,
        "latency_ms": step_seconds * 1e3,
        "gmacs_per_image": flops / 2 / batch_size / 1e9,
        "gemm_gflops": gemm_rate / 1e9,
        "share_of_gemm": flops / gemm_rate / step_seconds,
        "peak_memory_gb": peak * 1024 / 1e9,
    }


def measure_orders(repeats: int) -> dict[str, dict[int, float]]:
    """Milliseconds of Q Kᵀ V alone, in both orders, for 12 heads of 32 features and more and more tokens."""
    import torch

    from spikformer.layers import attention as mixing
    from spikformer.runs.process import keep_freed_memory

    keep_freed_memory()
    torch.set_num_threads(2)
    results: dict[str, dict[int, float]] = {name: {} for name in ORDERS}
    for num_tokens in TOKENS:
        q, k, v = (torch.rand(1, 12, num_tokens, 32).lt(0.2).float() for _ in range(3))
        for name, function in ORDERS.items():
            product = partial(getattr(mixing, function), q, k, v)
            product()
            results[name][num_tokens] = min(timed(product) for _ in range(5 * repeats)) * 1e3
    return results


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

    repeats = 3 if arguments.quick else 10
    results: dict[str, object] = {}
    print(f"{MODEL}, float32, 2 threads, {platform.machine()}, {time.strftime('%Y-%m-%d')}")
    print(f"{'':24}{'img/s':>8}{'ms':>9}{'GMAC/img':>10}{'GEMM GFLOP/s':>14}{'share':>8}{'peak GB':>9}  goal")
    latencies: dict[str, dict[int, float]] = {"T": {}, "N": {}}
    for case in CASES:
        row = in_its_own_process(case, repeats)
        results[case] = row
        for axis, points in latencies.items():
            if f" {axis} = " in case:
                points[int(case.split(" = ")[1])] = row["latency_ms"]
        print(
            f"{case:24}{row['images_per_second']:8.1f}{row['latency_ms']:9.1f}{row['gmacs_per_image']:10.3f}"
            f"{row['gemm_gflops']:14.0f}{row['share_of_gemm']:8.0%}{row['peak_memory_gb']:9.2f}  {GOALS.get(case, '')}",
            flush=True,
        )
    for axis, points in latencies.items():
        print(f"the network's time grows as {axis}^{exponent(points):.2f} over {axis} = {', '.join(map(str, points))}")
    orders = measure_orders(repeats)
    for name, points in orders.items():
        listed = ", ".join(f"{latency:.2f} ms" for latency in points.values())
        print(f"{name} alone takes {listed} at N = {', '.join(map(str, points))}: N^{exponent(points):.2f}")
    growth = {name: {"exponent": exponent(points), "ms": points} for name, points in (latencies | orders).items()}
    print(json.dumps(results | {"growth": growth}))


def exponent(points: dict[int, float]) -> float:
    """Slope of log time over log size, by least squares: 1 is linear, 2 quadratic."""
    logs = [(math.log(size), math.log(latency)) for size, latency in points.items()]
    mean_x, mean_y = (sum(axis) / len(logs) for axis in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


if __name__ == "__main__":
    main()
