"""What rounded weights would do to the engine: spikes and answers that differ from float32, by bits of a weight.

    python benchmarks/rounded_weights.py WEIGHTS --data DIR [--images 400]

Every product but the first, whose inputs are pixels, gets weights that are integer multiples of a step; each output has
its own, so that its largest weight just fits. Both run by events. docs/engine-log.md has the result.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from spikformer.engine.engine import Engine
from spikformer.engine.lowering import from_model
from spikformer.engine.ops import Convolve
from spikformer.engine.program import Program
from spikformer.runs.measure import prepared_batches
from spikformer.runs.trained import load_trained, open_data

BITS = (16, 14, 12, 10, 8)


def round_product(op: Convolve, bits: int) -> Convolve:
    step = np.abs(op.weights).max(axis=(1, 2, 3), keepdims=True).astype(np.float64) / (2 ** (bits - 1) - 1)
    multiples = np.round(op.weights / np.where(step > 0, step, 1))
    return replace(op, weights=(multiples * step).astype(np.float32))


def round_program(program: Program, bits: int) -> Program:
    first, *rest = program.ops
    return replace(program, ops=(first, *(round_product(op, bits) if isinstance(op, Convolve) else op for op in rest)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=400)
    options = parser.parse_args()
    model = load_trained(options.weights)
    program = from_model(model).program
    exact = Engine(program)
    exact.mode = "events"
    rows = []
    print("| bits | spikes that differ | answers that differ |\n|---|---|---|")
    for bits in BITS:
        rounded = Engine(round_program(program, bits))
        rounded.mode = "events"
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
