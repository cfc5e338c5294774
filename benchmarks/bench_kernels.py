"""Every kernel of the engine on its own: each instruction set that runs here, beside the NumPy twin that defines it.

    python benchmarks/bench_kernels.py             microseconds of a call, the least of up to fifteen; seconds in all
    python benchmarks/bench_kernels.py --quick     one call of each

Shapes are those of spikformer_4_384_cifar10 and, for what it lacks, of networks of its size; a call includes the
binding that tests use, some microseconds of copying. Twins are written to be read: those of the event-driven
products add event by event.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastest import fastest
from spikformer.engine import reference as twin
from spikformer.engine.native import native_core

SETS = ("scalar", "avx2", "avx512", "amx", "neon")
OF_INTEGERS = ("integer_linear", "expand_bytes")  # kernels of the sets that multiply integers
STEPS, TOKENS, WIDTH, HEAD, CLASSES = 4, 64, 384, 32, 10
NUM_HEADS = WIDTH // HEAD
ROWS = f"{TOKENS} rows of {STEPS} × {WIDTH}"
NEURON = (0.5, 1.0, 1.0, 0.0)

Case = tuple[str, Callable[[Any], Callable[[], object]], Callable[[], object]]


def draw_spikes(rng: np.random.Generator, density: float, shape: tuple[int, int, int]) -> np.ndarray:
    """Spikes [rows, T, K] as in trained networks: of a part of the inputs, at a third of the steps or more."""
    rows, _, inputs = shape
    active = rng.random((rows, 1, inputs)) < min(1.0, 3 * density)
    return active & (rng.random(shape) < max(1 / 3, density))


class Inputs:
    """Random inputs, drawn once."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.spikes, self.few = (draw_spikes(rng, density, (TOKENS, STEPS, WIDTH)) for density in (0.3, 0.1))
        self.counts = self.spikes * rng.integers(1, 4, self.spikes.shape, np.uint8)
        self.nine = draw_spikes(rng, 0.1, (9, STEPS, WIDTH))
        self.row = self.nine.swapaxes(0, 1).reshape(STEPS, -1)
        self.weights, self.bias = rng.standard_normal((WIDTH, WIDTH), np.float32), np.zeros(WIDTH, np.float32)
        self.window = rng.standard_normal((3, 3, WIDTH), np.float32)
        self.values = rng.random((TOKENS * STEPS, WIDTH), np.float32)
        self.currents = rng.standard_normal((STEPS, TOKENS, WIDTH), np.float32)
        self.heads = [draw_spikes(rng, 0.1, (TOKENS, 1, HEAD))[:, 0] for _ in range(3)]
        self.gates = rng.random(NUM_HEADS) < 0.5
        self.pixels = draw_spikes(rng, 0.1, (1024, 1, STEPS * 192)).reshape(32, 32, -1)
        self.stream = rng.standard_normal((32, 32, STEPS * 192), np.float32)
        self.head, self.head_bias = rng.standard_normal((CLASSES, WIDTH), np.float32), np.zeros(CLASSES, np.float32)


def cases() -> dict[str, Case]:
    """By kernel: what it is given, how a set of kernels is called, and how its twin is."""
    inputs = Inputs()
    return product_cases(inputs) | map_cases(inputs) | stream_cases(inputs)


def product_cases(x: Inputs) -> dict[str, Case]:
    packed = twin.pack_spikes
    places = x.few.reshape(8, 8, STEPS, WIDTH)

    def layer(kernels: Any) -> Any:
        return kernels.pack(x.weights[:, None], x.bias)

    return {
        "list_events": (
            f"a row of {STEPS} × {9 * WIDTH}, 10 %",
            lambda k: partial(k.list_events, packed(x.row)),
            partial(twin.list_events_reference, x.row),
        ),
        "merge_events": (
            f"9 parts of {STEPS} × {WIDTH}, 10 %",
            lambda k: partial(k.merge_events, packed(x.nine)),
            partial(twin.merge_events_reference, x.nine),
        ),
        "list_counts": (
            f"a row of {STEPS} × {WIDTH}, 30 %",
            lambda k: partial(k.list_counts, x.counts[0]),
            partial(twin.list_counts_reference, x.counts[0]),
        ),
        "merge_counts": (
            f"9 parts of {STEPS} × {WIDTH}, 30 %",
            lambda k: partial(k.merge_counts, x.counts[:9]),
            partial(twin.merge_counts_reference, x.counts[:9]),
        ),
        "spike_linear": (
            f"{ROWS} to {WIDTH}, 10 %",
            lambda k: partial(k.spike_linear, layer(k), packed(x.few)),
            partial(twin.spike_linear_reference, x.few, x.weights),
        ),
        "count_linear": (
            f"{ROWS} to {WIDTH}, 30 %",
            lambda k: partial(k.count_linear, layer(k), x.counts),
            partial(twin.count_linear_reference, x.counts, x.weights),
        ),
        "depthwise_linear": (
            f"8 × 8 of {STEPS} × {WIDTH}, 3×3, 10 %",
            lambda k: partial(k.depthwise_linear, packed(places), x.window),
            partial(twin.depthwise_linear_reference, places, x.window),
        ),
        "dense_linear": (
            f"{ROWS} to {WIDTH}",
            lambda k: partial(k.dense_linear, layer(k), x.values),
            partial(twin.dense_linear_reference, x.values, x.weights),
        ),
        "integer_linear": (
            f"{ROWS} to {WIDTH}",
            lambda k: partial(k.integer_linear, layer(k), x.counts.reshape(-1, WIDTH)),
            partial(twin.integer_linear_reference, x.counts.reshape(-1, WIDTH), x.weights),
        ),
        "fire": (
            f"{TOKENS} rows of {WIDTH} neurons, {STEPS} steps",
            lambda k: partial(k.fire, x.currents, x.bias, NEURON, None),
            partial(twin.fire_reference, x.currents, x.bias, NEURON),
        ),
    } | {f"attend, {order}": attend_case(x, order) for order in ("key_value_first", "query_key_first")}


def attend_case(x: Inputs, order: str) -> Case:
    packed_heads = [twin.pack_spikes(spikes) for spikes in x.heads]
    return (
        f"{TOKENS} tokens, {HEAD} features, {order.replace('_', ' ')}, 10 %",
        lambda k: partial(k.attend, *packed_heads, HEAD, 0.125, order),
        partial(twin.attend_reference, *x.heads, 0.125),
    )


def map_cases(x: Inputs) -> dict[str, Case]:
    packed = twin.pack_spikes
    maps, tokens, flat = packed(x.pixels), x.few.reshape(TOKENS, -1), x.spikes.reshape(-1)
    counts = (x.pixels * np.uint8(3)).astype(np.uint8)
    return {
        "pool_map": (
            f"32 × 32 of {STEPS} × 192",
            lambda k: partial(k.pool_map, maps),
            partial(twin.pool_map_reference, x.pixels),
        ),
        "pool_counts": (
            f"32 × 32 of {STEPS} × 192, 2×2",
            lambda k: partial(k.pool_counts, counts, 2),
            partial(twin.pool_counts_reference, counts, 2),
        ),
        "pool_floats": (
            f"32 × 32 of {STEPS} × 192",
            lambda k: partial(k.pool_floats, x.stream),
            partial(twin.pool_floats_reference, x.stream),
        ),
        "pool_tokens": (
            f"{TOKENS} tokens of {STEPS} × {WIDTH}, 3 wide",
            lambda k: partial(k.pool_tokens, packed(tokens), 3),
            partial(twin.pool_tokens_reference, tokens, 3),
        ),
        "dilate_heads": (
            f"{TOKENS} tokens of {WIDTH}, {NUM_HEADS} heads",
            lambda k: partial(k.dilate_heads, packed(x.few[:, :1]), WIDTH, NUM_HEADS),
            partial(twin.dilate_heads_reference, x.few[:, 0], NUM_HEADS),
        ),
        "and_spikes": (
            ROWS,
            lambda k: partial(k.and_spikes, packed(flat), packed(x.few.reshape(-1)), False),
            partial(twin.and_spikes_reference, flat, x.few.reshape(-1), False),
        ),
        "spread_heads": (
            f"{NUM_HEADS} heads of {HEAD}",
            lambda k: partial(k.spread_heads, packed(x.gates), NUM_HEADS, HEAD),
            partial(twin.spread_heads_reference, x.gates, HEAD),
        ),
        "sum_heads": (
            f"{TOKENS} tokens of {WIDTH}, {NUM_HEADS} heads",
            lambda k: partial(k.sum_heads, packed(x.spikes[:, 0]), WIDTH, NUM_HEADS),
            partial(twin.sum_heads_reference, x.spikes[:, 0], NUM_HEADS),
        ),
        "sum_spikes": (
            f"{TOKENS} tokens of {WIDTH}",
            lambda k: partial(k.sum_spikes, packed(x.spikes[:, 0])),
            partial(twin.sum_spikes_reference, x.spikes[:, 0]),
        ),
    }


def stream_cases(x: Inputs) -> dict[str, Case]:
    packed = twin.pack_spikes
    counts, spikes, tokens = x.counts.reshape(-1), x.spikes.reshape(-1), np.ascontiguousarray(x.counts[:, 0])
    currents, values = x.currents.reshape(-1), x.values.reshape(-1)
    return {
        "add_spikes": (
            ROWS,
            lambda k: partial(k.add_spikes, packed(spikes), counts),
            partial(twin.add_spikes_reference, spikes, counts),
        ),
        "expand_spikes": (
            ROWS,
            lambda k: partial(k.expand_spikes, packed(spikes)),
            partial(twin.expand_spikes_reference, spikes),
        ),
        "expand_counts": (
            ROWS,
            lambda k: partial(k.expand_counts, counts),
            partial(twin.expand_counts_reference, counts),
        ),
        "expand_bytes": (
            ROWS,
            lambda k: partial(k.expand_bytes, packed(spikes)),
            partial(twin.expand_bytes_reference, spikes),
        ),
        "count_spikes": (
            ROWS,
            lambda k: partial(k.count_spikes, packed(spikes)),
            partial(twin.count_spikes_reference, spikes),
        ),
        "count_active": (
            ROWS,
            lambda k: partial(k.count_active, counts),
            partial(twin.count_active_reference, counts),
        ),
        "read_out": (
            f"{TOKENS} tokens of {WIDTH} to {CLASSES}",
            lambda k: partial(k.read_out, tokens, x.head, x.head_bias),
            partial(twin.read_out_reference, tokens, x.head, x.head_bias),
        ),
        "add_floats": (
            ROWS,
            lambda k: partial(k.add_floats, currents, values),
            partial(twin.add_floats_reference, currents, values),
        ),
        "read_out_floats": (
            f"{TOKENS} tokens of {WIDTH} to {CLASSES}",
            lambda k: partial(k.read_out_floats, x.currents[0], x.head, x.head_bias),
            partial(twin.read_out_floats_reference, x.currents[0], x.head, x.head_bias),
        ),
    }


def sets_that_run_here() -> dict[str, Any]:
    found = {}
    for name in SETS:
        try:
            found[name] = native_core().Kernels(name)
        except ValueError:  # not compiled in, or not on this processor
            continue
    return found


def once(*calls: Callable[[], object]) -> list[float]:
    """Seconds of one call of each."""
    seconds = []
    for call in calls:
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one call of each")
    timed = once if parser.parse_args().quick else fastest
    sets = sets_that_run_here()
    rows = []
    for name, (given, call_of, twin_call) in cases().items():
        having = {
            key: kernels for key, kernels in sets.items() if kernels.multiplies_integers or name not in OF_INTEGERS
        }
        seconds = timed(*[call_of(kernels) for kernels in having.values()], twin_call)
        rows.append(
            {"kernel": name, "given": given}
            | {column: second * 1e6 for column, second in zip([*having, "twin"], seconds, strict=True)}
        )
    print(f"{platform.processor() or platform.machine()}, one core, microseconds of a call\n")
    print("| kernel | given | " + " | ".join([*sets, "NumPy twin"]) + " |\n|" + "---|" * (len(sets) + 3))
    for row in rows:
        times = " | ".join(f"{row[column]:.1f}" if column in row else "–" for column in [*sets, "twin"])
        print(f"| {row['kernel']} | {row['given']} | {times} |")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
