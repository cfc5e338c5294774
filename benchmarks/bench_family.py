"""Networks of several architectures in one run: eager PyTorch and the engine, and what the products read.

    python benchmarks/bench_family.py runs/*/last.safetensors --data DIR

All networks, on both sides and at both batch sizes, are measured in turns in one process, so that all see the same
machine; ratios are of the fastest calls. Densities are the shares of inputs that are not 0, means over the products of
a kind weighted by their multiply-accumulates; "binary" is the share of multiply-accumulates whose input is 0 or 1
throughout, attention left out. Then the engine's answers and spikes are compared with the model's, and its accuracy is
that of the whole test split. Give weights that have learnt: an untrained network's firing rates say nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agreement import measure_agreement
from contenders import BATCH_SIZES, load_images, prepare_contender
from spikformer.runs.bench import speed_of, time_calls

if TYPE_CHECKING:
    from spikformer.analysis.energy import Layer
    from spikformer.engine import Engine

ROUNDS = 5
SIDES = ("eager", "engine")
KINDS = {"value": "qkv", "query": "qkv", "key": "qkv", "projection": "projection", "hidden": "fc1", "output": "fc2"}
"""Of a layer of a block, by the second word from the end of its name."""
COLUMNS = ("stem", "qkv", "projection", "fc1", "fc2")
DENSITY_IMAGES, DENSITY_BATCH = 256, 32


def kind_of(layer: Layer) -> str | None:
    """What a product is for. Convolutions between stages are the stem's; pixels, heads and attention are left out."""
    path = layer.name.split(".")
    if layer.kind == "attention" or layer.once or len(path) < 2:
        return None
    return KINDS.get(path[-2], "mixer") if path[0] == "blocks" else "stem"


def measure_inputs(weights: Path, data: Path | None) -> dict[str, Any]:
    """Densities by kind, and the share of products that read spikes."""
    from spikformer.analysis.energy import measure_energy
    from spikformer.runs.measure import batches
    from spikformer.runs.trained import load_trained, open_data

    model = load_trained(weights)
    images = batches(model, open_data(model, data), "test", DENSITY_IMAGES, DENSITY_BATCH)
    layers = [layer for layer in measure_energy(model, images).layers if layer.kind != "attention"]
    by_kind: dict[str, list[Layer]] = {}
    for layer in layers:
        if (kind := kind_of(layer)) is not None:
            by_kind.setdefault(kind, []).append(layer)
    macs = sum(layer.macs for layer in layers)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "time_steps": model.config.time_steps,
        "binary_share": sum(layer.macs for layer in layers if layer.binary) / macs,
        "densities": {
            kind: sum(layer.density * layer.macs for layer in members) / sum(layer.macs for layer in members)
            for kind, members in by_kind.items()
        },
    }


def measure_speeds(
    paths: Sequence[Path], data: Path | None, threads: int, seconds: float
) -> tuple[list[dict[str, Any]], list[Engine]]:
    """Of each network: by side and batch size. `seconds` for each of them, in all rounds together; and the engines."""
    calls: list[dict[tuple[str, int], Callable[[], object]]] = []
    engines = []
    for path in paths:
        model, images = load_images(path, data, max(BATCH_SIZES))
        sides = {side: prepare_contender(side, model, images, threads) for side in SIDES}
        engines.append(sides["engine"])
        calls.append({(side, size): partial(sides[side], images[:size]) for side in SIDES for size in BATCH_SIZES})
        for call in calls[-1].values():
            call()  # warm
    times = [{key: [] for key in of_network} for of_network in calls]
    for _ in range(ROUNDS):
        for of_network, taken in zip(calls, times, strict=True):
            for key, call in of_network.items():
                taken[key] += time_calls(call, seconds / ROUNDS, fewest=1)
    speeds = [
        {side: {str(size): vars(speed_of(size, taken[side, size])) for size in BATCH_SIZES} for side in SIDES}
        for taken in times
    ]
    return speeds, engines


def accuracy_of(engine: Engine, data: Path | None) -> float:
    import spikformer as sf

    return sf.evaluate(engine, data=data).top1


def show(networks: Sequence[dict[str, Any]]) -> None:
    timed = " | ".join(f"eager, batch {size} | engine | times" for size in BATCH_SIZES)
    print(f"| network, ms an image | T | parameters, M | test, % | {timed} |\n|" + "---|" * 10)
    for each in networks:
        cells = []
        for size in map(str, BATCH_SIZES):
            eager, engine = (each["speeds"][side][size]["fastest_ms"] for side in SIDES)
            cells += [f"{eager / int(size):.2f}", f"{engine / int(size):.3f}", f"{eager / engine:.1f}"]
        start = (
            each["name"],
            str(each["time_steps"]),
            f"{each['parameters'] / 1e6:.2f}",
            f"{each['accuracy']:.2%}"[:-1],
        )
        print("| " + " | ".join((*start, *cells)) + " |")
    print("\n| network | T | " + " | ".join(COLUMNS) + " | binary | same answers | spikes that differ |")
    print("|---|---|" + "---|" * len(COLUMNS) + "---|---|---|")
    for each in networks:
        densities = (f"{each['densities'][kind]:.1%}" if kind in each["densities"] else "–" for kind in COLUMNS)
        agreed = each["agreement"]
        rest = (f"{each['binary_share']:.0%}", f"{agreed['same_answer']:.2%}", f"{agreed['spikes_different']:.1e}")
        print("| " + " | ".join((each["name"], str(each["time_steps"]), *densities, *rest)) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each network, side and batch size")
    parser.add_argument("--images", type=int, default=2000, help="to compare answers and spikes on")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    speeds, engines = measure_speeds(options.weights, options.data, options.threads, options.seconds)
    print("Speeds are measured; agreement and accuracy follow.", file=sys.stderr, flush=True)
    networks = []
    for path, measured, engine in zip(options.weights, speeds, engines, strict=True):
        found = {"name": path.parent.name if path.stem in ("best", "last") else path.stem, "speeds": measured}
        found |= measure_inputs(path, options.data) | {"accuracy": accuracy_of(engine, options.data)}
        found["agreement"] = measure_agreement(path, options.data, options.threads, options.images)
        networks.append(found)
    show(networks)
    print(json.dumps({"machine": platform.processor() or platform.machine(), "networks": networks}))


if __name__ == "__main__":
    main()
