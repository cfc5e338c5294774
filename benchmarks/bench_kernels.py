"""Every kernel of the engine on its own: each instruction set that runs here, beside the NumPy twin that defines it.

    python benchmarks/bench_kernels.py             microseconds of a call, the least of up to seven; seconds in all

Shapes are those of spikformer_4_384_cifar10 (which has no pool of tokens); a call includes the binding that tests use,
some microseconds of copying. Twins are written to be read: those of the event-driven products add event by event.
"""

from __future__ import annotations

import json
import platform
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
NEURON = (0.5, 1.0, 1.0, 0.0)

Case = tuple[str, Callable[[Any], Callable[[], object]], Callable[[], object]]


def draw_spikes(rng: np.random.Generator, density: float, shape: tuple[int, int, int]) -> np.ndarray:
    """Spikes [rows, T, K] as in trained networks: of a part of the inputs, at a third of the steps or more."""
    rows, _, inputs = shape
    active = rng.random((rows, 1, inputs)) < min(1.0, 3 * density)
    return active & (rng.random(shape) < max(1 / 3, density))


def cases() -> dict[str, Case]:
    """By kernel: what it is given, how a set of kernels is called, and how its twin is."""
    rng = np.random.default_rng(0)
    spikes, few = (draw_spikes(rng, density, (TOKENS, STEPS, WIDTH)) for density in (0.3, 0.1))
    counts = spikes * rng.integers(1, 4, spikes.shape, np.uint8)
    nine = draw_spikes(rng, 0.1, (9, STEPS, WIDTH))
    row = nine.swapaxes(0, 1).reshape(STEPS, -1)
    weights, bias = rng.standard_normal((WIDTH, WIDTH), np.float32), np.zeros(WIDTH, np.float32)
    values = rng.random((TOKENS * STEPS, WIDTH), np.float32)
    currents = rng.standard_normal((STEPS, TOKENS, WIDTH), np.float32)
    heads = [draw_spikes(rng, 0.1, (TOKENS, 1, HEAD))[:, 0] for _ in range(3)]
    pixels = draw_spikes(rng, 0.1, (1024, 1, STEPS * 192)).reshape(32, 32, -1)
    stream = rng.standard_normal((32, 32, STEPS * 192), np.float32)
    head, head_bias = rng.standard_normal((CLASSES, WIDTH), np.float32), np.zeros(CLASSES, np.float32)
    packed = twin.pack_spikes
    words = {"few": packed(few), "row": packed(row), "nine": packed(nine), "map": packed(pixels)}
    flat, flat_spikes = counts.reshape(-1), spikes.reshape(-1)
    packed_heads, tokens = [packed(spikes) for spikes in heads], few.reshape(TOKENS, -1)

    def layer(kernels: Any) -> Any:
        return kernels.pack(weights[:, None], bias)

    def attend(order: str) -> Case:
        return (
            f"{TOKENS} tokens, {HEAD} features, {order.replace('_', ' ')}, 10 %",
            lambda k: partial(k.attend, *packed_heads, HEAD, 0.125, order),
            partial(twin.attend_reference, *heads, 0.125),
        )

    rows = f"{TOKENS} rows of {STEPS} × {WIDTH}"
    return {
        "list_events": (
            f"a row of {STEPS} × {9 * WIDTH}, 10 %",
            lambda k: partial(k.list_events, words["row"]),
            partial(twin.list_events_reference, row),
        ),
        "merge_events": (
            f"9 parts of {STEPS} × {WIDTH}, 10 %",
            lambda k: partial(k.merge_events, words["nine"]),
            partial(twin.merge_events_reference, nine),
        ),
        "list_counts": (
            f"a row of {STEPS} × {WIDTH}, 30 %",
            lambda k: partial(k.list_counts, counts[0]),
            partial(twin.list_counts_reference, counts[0]),
        ),
        "spike_linear": (
            f"{rows} to {WIDTH}, 10 %",
            lambda k: partial(k.spike_linear, layer(k), words["few"]),
            partial(twin.spike_linear_reference, few, weights),
        ),
        "count_linear": (
            f"{rows} to {WIDTH}, 30 %",
            lambda k: partial(k.count_linear, layer(k), counts),
            partial(twin.count_linear_reference, counts, weights),
        ),
        "dense_linear": (
            f"{rows} to {WIDTH}",
            lambda k: partial(k.dense_linear, layer(k), values),
            partial(twin.dense_linear_reference, values, weights),
        ),
        "integer_linear": (
            f"{rows} to {WIDTH}",
            lambda k: partial(k.integer_linear, layer(k), counts.reshape(-1, WIDTH)),
            partial(twin.integer_linear_reference, counts.reshape(-1, WIDTH), weights),
        ),
        "fire": (
            f"{TOKENS} rows of {WIDTH} neurons, {STEPS} steps",
            lambda k: partial(k.fire, currents, bias, NEURON, None),
            partial(twin.fire_reference, currents, bias, NEURON),
        ),
        "attend, key_value_first": attend("key_value_first"),
        "attend, query_key_first": attend("query_key_first"),
        "pool_map": (
            f"32 × 32 of {STEPS} × 192",
            lambda k: partial(k.pool_map, words["map"]),
            partial(twin.pool_map_reference, pixels),
        ),
        "pool_tokens": (
            f"{TOKENS} tokens of {STEPS} × {WIDTH}, 3 wide",
            lambda k: partial(k.pool_tokens, packed(tokens), 3),
            partial(twin.pool_tokens_reference, tokens, 3),
        ),
        "add_spikes": (
            rows,
            lambda k: partial(k.add_spikes, packed(flat_spikes), flat),
            partial(twin.add_spikes_reference, flat_spikes, flat),
        ),
        "expand_spikes": (
            rows,
            lambda k: partial(k.expand_spikes, packed(flat_spikes)),
            partial(twin.expand_spikes_reference, flat_spikes),
        ),
        "expand_counts": (
            rows,
            lambda k: partial(k.expand_counts, flat),
            partial(twin.expand_counts_reference, flat),
        ),
        "expand_bytes": (
            rows,
            lambda k: partial(k.expand_bytes, packed(flat_spikes)),
            partial(twin.expand_bytes_reference, flat_spikes),
        ),
        "count_spikes": (
            rows,
            lambda k: partial(k.count_spikes, packed(flat_spikes)),
            partial(twin.count_spikes_reference, flat_spikes),
        ),
        "count_active": (
            rows,
            lambda k: partial(k.count_active, flat),
            partial(twin.count_active_reference, flat),
        ),
        "read_out": (
            f"{TOKENS} tokens of {WIDTH} to {CLASSES}",
            lambda k: partial(k.read_out, counts[:, 0].copy(), head, head_bias),
            partial(twin.read_out_reference, counts[:, 0], head, head_bias),
        ),
        "add_floats": (
            rows,
            lambda k: partial(k.add_floats, currents.reshape(-1), values.reshape(-1)),
            partial(twin.add_floats_reference, currents.reshape(-1), values.reshape(-1)),
        ),
        "pool_floats": (
            f"32 × 32 of {STEPS} × 192",
            lambda k: partial(k.pool_floats, stream),
            partial(twin.pool_floats_reference, stream),
        ),
        "read_out_floats": (
            f"{TOKENS} tokens of {WIDTH} to {CLASSES}",
            lambda k: partial(k.read_out_floats, currents[0], head, head_bias),
            partial(twin.read_out_floats_reference, currents[0], head, head_bias),
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


def main() -> None:
    sets = sets_that_run_here()
    rows = []
    for name, (given, call_of, twin_call) in cases().items():
        having = {
            key: kernels for key, kernels in sets.items() if kernels.multiplies_integers or name not in OF_INTEGERS
        }
        seconds = fastest(*[call_of(kernels) for kernels in having.values()], twin_call)
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
