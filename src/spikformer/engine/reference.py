"""Every kernel of kernels/core/kernels.hpp in plain NumPy: what it computes, for people to read.

    T steps, C channels, K inputs of a row (neighbours times channels), O outputs, N tokens, D features of a head

Spikes are booleans here and bits in the kernels, where 64 channels share a word: `pack_spikes` and `unpack_spikes` are
the bridge. Integers, their products, bits and sums of events are equal to the kernels' to the last bit, because
the order of a sum of events is part of its definition. Dense products of floats and the readout are only close.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Spikes = NDArray[np.bool_]
Words = NDArray[np.uint64]
Counts = NDArray[np.uint8]
Floats = NDArray[np.float32]

WORD_BITS = 64
GROUP_STEPS = 4
NUM_PATTERNS = 2**GROUP_STEPS

_LARGEST_INTEGER = 0x7F7F7F  # of three signed bytes


def pack_spikes(spikes: Spikes) -> Words:
    """[…, C] to words […, ⌈C / 64⌉]: channel c is bit c mod 64 of word ⌊c / 64⌋; bits beyond C are 0."""
    padding = [(0, 0)] * (spikes.ndim - 1) + [(0, -spikes.shape[-1] % WORD_BITS)]
    return np.packbits(np.pad(spikes, padding), axis=-1, bitorder="little").view(np.uint64)


def unpack_spikes(words: Words, channels: int) -> Spikes:
    """Words […, W] to the spikes […, C] of their first channels."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=channels, bitorder="little").astype(bool)


def list_events_reference(fires: Spikes) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """The inputs of one group [T ≤ 4, K] that fire, by their pattern Σ 2^t over steps t; events of p end at ends[p].

    Events of one pattern are in the order of inputs. Silence, pattern 0, is no event.
    """
    patterns = (fires.astype(np.uint8) << np.arange(len(fires))[:, None]).sum(axis=0)  # [K]
    sizes = np.bincount(patterns, minlength=NUM_PATTERNS)
    by_pattern = np.argsort(patterns, kind="stable")[sizes[0] :]
    sizes[0] = 0
    return by_pattern.astype(np.uint16), np.cumsum(sizes).astype(np.uint32)


def merge_events_reference(parts: Spikes) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """The events of a row made of parts [parts, T ≤ 4, C], as a convolution's is of nine neighbours."""
    return list_events_reference(np.concatenate(list(parts), axis=1))


def list_counts_reference(counts: Counts) -> tuple[NDArray[np.uint16], Floats, NDArray[np.uint32]]:
    """The same for counts [T ≤ 4, K], with the counts of each event at the steps it fires at, event by event."""
    indices, ends = list_events_reference(counts > 0)
    of_events = counts[:, indices].T  # [events, T]
    return indices, of_events[of_events > 0].astype(np.float32), ends


def spike_linear_reference(spikes: Spikes, weights: Floats) -> Floats:
    """Currents [rows, T, O] = spikes [rows, T, K] · weights [O, K], by adding the weights of events."""
    return count_linear_reference(spikes.astype(np.uint8), weights)


def count_linear_reference(counts: Counts, weights: Floats) -> Floats:
    """The same for counts [rows, T, K]: an event's weights are added as often as it counts, rounded once.

    Two sums take the events of each pattern in turns, and are added in the end.
    """
    rows, time_steps, _ = counts.shape
    currents = np.empty((rows, time_steps, len(weights)), np.float32)
    for row in range(rows):
        for first in range(0, time_steps, GROUP_STEPS):
            group = counts[row, first : first + GROUP_STEPS]
            indices, ends = list_events_reference(group > 0)
            turns = np.concatenate([np.arange(size) % 2 for size in np.diff(ends, prepend=0)])
            for step, values in enumerate(group):
                fires = values[indices] > 0
                even, odd = indices[fires & (turns == 0)], indices[fires & (turns == 1)]
                currents[row, first + step] = _add_one_by_one(weights[:, even], values[even])
                currents[row, first + step] += _add_one_by_one(weights[:, odd], values[odd])
    return currents


def _add_one_by_one(weights: Floats, counts: Counts) -> Floats:
    """Σ weights [O, n] · counts [n], each sum rounded to float32: a product of 24 and 8 bits is exact in float64."""
    total = np.zeros(len(weights), np.float32)
    for weight, count in zip(weights.T.astype(np.float64), counts.astype(np.float64), strict=True):
        total = (total + weight * count).astype(np.float32)
    return total


def dense_linear_reference(inputs: Floats, weights: Floats) -> Floats:
    """Inputs [rows, K] · weights [O, K], in float64 until the end."""
    return (inputs.astype(np.float64) @ weights.T.astype(np.float64)).astype(np.float32)


def integer_linear_reference(inputs: Counts, weights: Floats) -> Floats:
    """Counts [rows, K] · weights [O, K] in integers: a weight is three signed bytes, each with an exact sum.

    The bytes of an output count powers of two, the least that its largest weight allows; 2^-126 is the smallest.
    """
    most = np.abs(weights).max(axis=1).astype(np.float64)  # [O]
    exponents = np.frexp(most)[1] - 23
    exponents += np.ldexp(most, -exponents) > _LARGEST_INTEGER
    exponents = np.maximum(exponents, -126)
    rest = np.rint(np.ldexp(weights.astype(np.float64), -exponents[:, None])).astype(np.int64)
    total = np.zeros((len(inputs), len(weights)), np.float32)
    for scale in np.ldexp(1.0, exponents + np.arange(0, 24, 8)[:, None]):  # from the lowest digit on
        digits = rest.astype(np.int8)
        rest = (rest - digits) >> 8
        sums = (inputs.astype(np.int64) @ digits.T.astype(np.int64)).astype(np.float32)
        total = (total + sums * scale).astype(np.float32)
    return total


def fire_reference(
    currents: Floats, bias: Floats, neuron: tuple[float, float, float, float], initial: Floats | None = None
) -> tuple[Spikes, Floats]:
    """Spikes [T, rows, C] and last voltages [rows, C] of H = V + gain (X + b − leak (V − V_reset)), Θ(H − V_th)."""
    membranes, voltage = _membranes_and_voltage(currents + bias, neuron, initial)
    return membranes >= np.float32(neuron[2]), voltage


def membranes_reference(currents: Floats, neuron: tuple[float, float, float, float]) -> Floats:
    """H of the same neurons at each step, before its reset; they begin at rest."""
    return _membranes_and_voltage(currents, neuron, None)[0]


def _membranes_and_voltage(
    currents: Floats, neuron: tuple[float, float, float, float], initial: Floats | None
) -> tuple[Floats, Floats]:
    gain, leak, v_threshold, v_reset = (np.float32(constant) for constant in neuron)
    voltage = np.full(currents.shape[1:], v_reset) if initial is None else initial
    membranes = np.empty(currents.shape, np.float32)
    for step, current in enumerate(currents):
        membrane = voltage + gain * (current - leak * (voltage - v_reset))
        membranes[step] = membrane
        voltage = np.where(membrane >= v_threshold, v_reset, membrane)
    return membranes, voltage


def attend_reference(query: Spikes, key: Spikes, value: Spikes, scale: float) -> Floats:
    """Q Kᵀ V · scale of one head at one step, [N, D] each; on integers the order of the two products is free."""
    q, k, v = (spikes.astype(np.int32) for spikes in (query, key, value))
    return (q @ k.T @ v).astype(np.float32) * np.float32(scale)


def pool_map_reference(spikes: Spikes) -> Spikes:
    """Max-pool of a map [H, W, C]: 3×3, stride 2, padding 1."""
    padded = np.pad(spikes, ((1, 1), (1, 1), (0, 0)))
    return sliding_window_view(padded, (3, 3), axis=(0, 1))[::2, ::2].max(axis=(-2, -1))


def pool_tokens_reference(spikes: Spikes, kernel: int) -> Spikes:
    """Max-pool along tokens [N, C]: an odd kernel, stride 1, padding kernel // 2."""
    padded = np.pad(spikes, ((kernel // 2, kernel // 2), (0, 0)))
    return sliding_window_view(padded, kernel, axis=0).max(axis=-1)


def add_spikes_reference(spikes: Spikes, counts: Counts) -> Counts:
    """Counts and spikes [C] added; a count stays at 255."""
    return np.minimum(counts.astype(np.int32) + spikes, 255).astype(np.uint8)


def expand_spikes_reference(spikes: Spikes) -> Floats:
    """Spikes as 0 and 1."""
    return spikes.astype(np.float32)


def expand_counts_reference(counts: Counts) -> Floats:
    """Counts as floats."""
    return counts.astype(np.float32)


def expand_bytes_reference(spikes: Spikes) -> Counts:
    """Spikes as 0 and 1, in bytes."""
    return spikes.astype(np.uint8)


def count_spikes_reference(spikes: Spikes) -> int:
    """How many there are."""
    return int(spikes.sum())


def count_active_reference(counts: Counts) -> int:
    """How many are not 0."""
    return int(np.count_nonzero(counts))


def sum_tokens_reference(counts: Counts, features: int) -> NDArray[np.int32]:
    """The sums over tokens [N, C] of the first features; the rest is padding."""
    return counts[:, :features].sum(axis=0, dtype=np.int32)


def read_out_reference(counts: Counts, weights: Floats, bias: Floats) -> Floats:
    """The head's logits [K] of the mean over tokens: weights [K, D] · counts [N, ≥ D] / N + bias, in float64."""
    totals = sum_tokens_reference(counts, weights.shape[1])
    return (weights.astype(np.float64) @ totals / len(counts) + bias).astype(np.float32)


def add_floats_reference(a: Floats, b: Floats) -> Floats:
    """A residual sum of floats."""
    return a + b


def pool_floats_reference(values: Floats) -> Floats:
    """Max-pool of a map [H, W, C] of floats: 3×3, stride 2, padding 1."""
    padded = np.pad(values, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    return sliding_window_view(padded, (3, 3), axis=(0, 1))[::2, ::2].max(axis=(-2, -1))


def read_out_floats_reference(values: Floats, weights: Floats, bias: Floats) -> Floats:
    """The head's logits [K] of the mean over tokens [N, D] of floats, in float64."""
    return (weights.astype(np.float64) @ values.sum(axis=0, dtype=np.float64) / len(values) + bias).astype(np.float32)
