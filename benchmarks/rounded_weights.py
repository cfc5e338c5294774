"""What rounded weights would do to the engine: spikes and answers that differ from float32, by bits of a weight.

    python benchmarks/rounded_weights.py WEIGHTS --data DIR [--images 400]

Every layer of neurons but the first, whose inputs are pixels, gets weights that are whole multiples of a step; each
output has its own, so that its largest weight just fits. Both run by events. docs/engine-log.md has the result.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from spikformer.engine.engine import Engine
from spikformer.engine.folding import fold
from spikformer.engine.plan import Layer, Plan
from spikformer.runs.measure import prepared_batches
from spikformer.runs.trained import load_trained, open_data

BITS = (16, 14, 12, 10, 8)


def round_layer(layer: Layer, bits: int) -> Layer:
    step = np.abs(layer.weights).max(axis=(1, 2), keepdims=True).astype(np.float64) / (2 ** (bits - 1) - 1)
    whole = np.round(layer.weights / np.where(step > 0, step, 1))
    return replace(layer, weights=(whole * step).astype(np.float32))


def round_plan(plan: Plan, bits: int) -> Plan:
    return replace(
        plan,
        stages=(plan.stages[0], *(round_layer(stage, bits) for stage in plan.stages[1:])),
        position=round_layer(plan.position, bits),
        blocks=tuple(
            replace(block, **{name: round_layer(layer, bits) for name, layer in block.layers().items()})
            for block in plan.blocks
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=400)
    options = parser.parse_args()
    model = load_trained(options.weights)
    plan = fold(model)
    exact = Engine(plan)
    exact.way = "events"
    rows = []
    print("| bits | spikes that differ | answers that differ |\n|---|---|---|")
    for bits in BITS:
        rounded = Engine(round_plan(plan, bits))
        rounded.way = "events"
        spikes = neurons = answers = samples = 0
        for images in prepared_batches(open_data(model, options.data), "test", options.images, 50):
            for ours, theirs in zip(rounded.spikes(images).values(), exact.spikes(images).values(), strict=True):
                spikes += int((ours != theirs).sum())
                neurons += ours.size
            answers += int((rounded(images).argmax(1) != exact(images).argmax(1)).sum())
            samples += len(images)
        rows.append({"bits": bits, "spikes": spikes / neurons, "answers": answers / samples})
        print(f"| {bits} | {spikes / neurons:.1e} | {answers / samples:.1%} |", flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
