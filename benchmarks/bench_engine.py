"""The engine beside PyTorch and onnxruntime, on a trained network and real images, in one run.

    python benchmarks/bench_engine.py WEIGHTS --data DIR             everything: ten minutes, most of it compiling
    python benchmarks/bench_engine.py WEIGHTS --data DIR --quick     without torch.compile, onnxruntime, 8-512
    python benchmarks/bench_engine.py WEIGHTS --data DIR --before TREE   also the engine of another commit, in its tree

Each contender has a process of its own, and they are measured in turns: all see the same machine. The engine takes
part twice, as it is and by events alone. Its peak memory includes PyTorch, which compiles it, onnxruntime's the export;
that is measured where it is installed (`pip install "spikformer[bench]"`). Ratios are of the fastest calls. An
untrained network's firing rates say nothing: give weights that have learnt.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agreement import measure_agreement
from contenders import (
    BATCH_SIZES,
    CONTENDERS,
    ENGINES,
    commands_before,
    commands_of,
    load_images,
    measure_in_turns,
    serve,
)
from fastest import fastest

DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
LARGE = "spikformer_8_512_imagenet"


def measure_layers(weights: Path, data: Path | None, threads: int) -> list[dict[str, Any]]:
    """Every layer by events and densely, and what `auto` chose, for a batch of the larger size."""
    import spikformer as sf

    model, images = load_images(weights, data, max(BATCH_SIZES))
    engine = sf.compile_engine(model, threads)
    fastest: dict[str, list[tuple[float, float]]] = {}
    for mode in ("events", "dense", "auto"):
        engine.mode = mode
        profiles = [engine.profile(images) for _ in range(4)]
        fastest[mode] = [
            (min(layer.list_ms for layer in layers), min(layer.product_ms for layer in layers))
            for layers in zip(*profiles, strict=True)
        ]
    chosen = profiles[0]
    size = max(BATCH_SIZES)
    return [
        {
            "layer": layer.name,
            "density": layer.density,
            "list_ms": events[0] / size,
            "events_ms": events[1] / size,
            "dense_ms": dense[1] / size,
            "dense_share": layer.dense_share,
        }
        for layer, events, dense in zip(chosen, fastest["events"], fastest["dense"], strict=True)
    ]


def measure_densities() -> list[dict[str, float]]:
    """One layer of 384 × 1536 on one core: events of 4 steps together, of each step alone, and dense products."""
    import numpy as np

    from bench_kernels import draw_spikes
    from spikformer.engine.native import chosen_instructions, native_core
    from spikformer.engine.reference import pack_spikes

    kernels, rng = native_core().Kernels(chosen_instructions()), np.random.default_rng(0)
    layer = kernels.pack(rng.standard_normal((1536, 1, 384), np.float32), np.zeros(1536, np.float32))
    values = rng.random((256, 384), np.float32)
    dense = {"dense_ms": partial(kernels.dense_linear, layer, values)}
    if kernels.multiplies_integers:
        dense["integers_ms"] = partial(kernels.integer_linear, layer, rng.integers(0, 2, values.shape, np.uint8))
    rows = []
    for density in DENSITIES:
        together, alone = (pack_spikes(draw_spikes(rng, density, shape)) for shape in ((64, 4, 384), (256, 1, 384)))
        calls = {
            "four_steps_ms": partial(kernels.spike_linear, layer, together),
            "one_step_ms": partial(kernels.spike_linear, layer, alone),
        } | dense
        seconds = fastest(*calls.values())
        rows.append({"density": density} | {name: s * 1e3 for name, s in zip(calls, seconds, strict=True)})
    return rows


def _milliseconds(call: Any) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def measure_large(threads: int) -> dict[str, float]:
    """8-512 at 224 × 224. Its weights are random, its norms have seen one batch: time and memory, not honest rates."""
    import torch

    import spikformer as sf
    from spikformer.analysis.specimens import frames_for, specimen
    from spikformer.presets import get_preset

    torch.set_num_threads(threads)
    config = get_preset(LARGE).config
    model = specimen(config, torch.float32)
    image = frames_for(config, 1, torch.float32)
    engine = sf.compile_engine(model, threads)
    with torch.no_grad():
        eager = min(_milliseconds(lambda: model(image)) for _ in range(3))
    ours = min(_milliseconds(lambda: engine(image)) for _ in range(4))
    return {"eager_ms": eager, "engine_ms": ours, "buffer_mb": engine.buffer_bytes / 1e6}


def in_a_process(*arguments: str) -> Any:
    found = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(found.stderr)
    return json.loads(found.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each contender and batch size")
    parser.add_argument("--images", type=int, default=2000, help="to compare answers and spikes on")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--before", type=Path, help="a tree of another commit with its own .venv, to compare with")
    parser.add_argument("--engines-only", action="store_true", help="time the engines alone: ours and --before's")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part in CONTENDERS:
        serve(options.part, options.weights, options.data, options.threads)
        return
    if options.part:
        print(json.dumps(run_part(options)))
        return
    rest = [str(options.weights), "--threads", str(options.threads), "--images", str(options.images)]
    rest += ["--data", str(options.data)] if options.data else []
    slow = {"torch.compile", "onnxruntime"} if options.quick else set()
    missing = set() if find_spec("onnxruntime") and find_spec("onnxscript") else {"onnxruntime"}
    names = [name for name in CONTENDERS if name not in slow | missing]
    names = list(ENGINES) if options.engines_only else names
    commands = commands_of(Path(__file__).absolute().parent.parent, Path(sys.executable), names, rest)
    commands |= commands_before(options.before, rest) if options.before else {}
    if options.engines_only:
        timed = measure_in_turns(commands, options.seconds)
        show_contenders(timed)
        print(json.dumps({"machine": platform.processor() or platform.machine(), "contenders": timed}))
        return
    found: dict[str, Any] = {
        "machine": platform.processor() or platform.machine(),
        "threads": options.threads,
        "agreement": in_a_process(*rest, "--part", "agreement"),
        "contenders": measure_in_turns(commands, options.seconds),
        "layers": in_a_process(*rest, "--part", "layers"),
        "densities": in_a_process(*rest, "--part", "densities"),
    }
    if not options.quick:
        found["large"] = in_a_process(*rest, "--part", "large")
    show(found)
    print(json.dumps(found))


def run_part(options: argparse.Namespace) -> Any:
    if options.part == "agreement":
        return measure_agreement(options.weights, options.data, options.threads, options.images)
    if options.part == "layers":
        return measure_layers(options.weights, options.data, options.threads)
    if options.part == "densities":
        return measure_densities()
    return measure_large(options.threads)


def show_contenders(contenders: list[dict[str, Any]]) -> None:
    first = contenders[0]["speeds"]
    over = f"over {contenders[0]['name']}"
    print(f"| | batch | images/s | {over} | fastest ms | median | 90 % | 99 % | peak GB | ready after s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for contender in contenders:
        for size, speed in contender["speeds"].items():
            ratio = speed["images_per_second"] / first[size]["images_per_second"]
            times = " | ".join(f"{speed[name]:.1f}" for name in ("fastest_ms", "median_ms", "p90_ms", "p99_ms"))
            print(
                f"| {contender['name']} | {size} | {speed['images_per_second']:.1f} | {ratio:.2f} | {times} "
                f"| {contender['peak_gb']:.2f} | {contender['ready_seconds']:.1f} |"
            )
    speeds = {contender["name"]: contender["speeds"] for contender in contenders}
    for name in [name for name in speeds if f"{name}, before" in speeds]:
        for size, speed in speeds[name].items():
            before = speeds[f"{name}, before"][size]
            fastest, median = (before[key] / speed[key] for key in ("fastest_ms", "median_ms"))
            print(f"{name}, batch {size}: {fastest:.2f} times as fast as before ({median:.2f} by the medians)")


def show(found: dict[str, Any]) -> None:
    agreed = found["agreement"]
    print(f"{agreed['samples']} images: the same answer for {agreed['same_answer']:.2%}")
    equal = agreed["samples_with_equal_spikes"]
    print(f"{agreed['spikes_different']:.1e} of the spikes differ, none in {equal} images")
    print(f"whose logits differ by at most {agreed['largest_difference_of_their_logits']:.1e}\n")
    show_contenders(found["contenders"])
    print("\n| layer | input density | listing ms/image | events | dense | taken dense |\n|---|---|---|---|---|---|")
    for row in found["layers"]:
        density = "–" if row["density"] is None else f"{row['density']:.1%}"
        times = " | ".join(f"{row[name]:.3f}" for name in ("list_ms", "events_ms", "dense_ms"))
        print(f"| {row['layer']} | {density} | {times} | {row['dense_share']:.0%} |")
    print("\n| density | events of 4 steps, ms | of each alone | dense | in integers | dense over events |")
    print("|---|---|---|---|---|---|")
    for row in found["densities"]:
        ratios = " and ".join(f"{row['dense_ms'] / row[name]:.2f}" for name in ("four_steps_ms", "one_step_ms"))
        times = " | ".join(f"{row[name]:.3f}" for name in ("four_steps_ms", "one_step_ms", "dense_ms"))
        whole = f"{row['integers_ms']:.3f}" if "integers_ms" in row else "–"
        print(f"| {row['density']:.0%} | {times} | {whole} | {ratios} |")
    if "large" in found:
        large = found["large"]
        print(
            f"\n{LARGE}, one image: eager {large['eager_ms']:.0f} ms, engine {large['engine_ms']:.0f} ms, "
            f"{large['buffer_mb']:.0f} MB of buffers"
        )


if __name__ == "__main__":
    main()
