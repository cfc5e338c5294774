"""Every kernel of kernels/core/kernels.hpp, and whole programs, in plain NumPy: what they compute, for people to read.

    T steps, C channels, K inputs of a row (neighbours times channels), O outputs, N tokens, D features of a head

Spikes are booleans here and bits in the kernels, where 64 channels share a word: `pack_spikes` and `unpack_spikes` are
the bridge. integers, their products, bits and sums of events are equal to the kernels' to the last bit, because
the order of a sum of events is part of its definition. Dense products of floats and the readout are only close.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spikformer.engine.program import Add, Attend, Convolve, Fire, Pool, PoolTokens, Program, ReadOut

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


def run_reference(program: Program, frames: Floats) -> list[NDArray]:
    """Every buffer of a program as [T, B, H, W, C], in plain NumPy and by events; the last one holds the logits.

    `frames` are static images [B, C, H, W] or event frames [T, B, C, H, W].
    """
    time_steps = program.time_steps if frames.ndim == 4 else len(frames)
    pixels = frames[None] if frames.ndim == 4 else frames
    buffers: list[NDArray] = [np.moveaxis(pixels, 2, -1)]
    for op in program.ops:
        inputs = [buffers[number] for number in op.inputs]
        buffers.append(_RUN[type(op)](op, time_steps, *inputs))
    return buffers


def _convolve(op: Convolve, time_steps: int, x: NDArray) -> Floats:
    reach = op.kernel // 2
    padded = np.pad(x, ((0, 0), (0, 0), (reach, reach), (reach, reach), (0, 0)))
    windows = sliding_window_view(padded, (op.kernel, op.kernel), axis=(2, 3))  # [T, B, H, W, C, k, k]
    rows = np.moveaxis(windows, 4, 6).reshape(*x.shape[:4], -1)  # [T, B, H, W, k·k·C]
    weights = op.weights.reshape(len(op.weights), -1)
    if x.dtype == np.float32:
        currents = dense_linear_reference(rows.reshape(-1, rows.shape[-1]), weights).reshape(*x.shape[:4], -1)
    else:
        counts = np.moveaxis(rows.reshape(len(x), -1, rows.shape[-1]), 0, 1).astype(np.uint8)  # [rows, T, K]
        currents = np.moveaxis(count_linear_reference(counts, weights), 1, 0).reshape(*x.shape[:4], -1)
    return currents + op.bias


def _fire(op: Fire, time_steps: int, x: NDArray) -> Spikes:
    currents = np.broadcast_to(x.astype(np.float32), (time_steps, *x.shape[1:]))
    return fire_reference(currents, np.zeros(x.shape[-1], np.float32), op.neuron.as_tuple())[0]


def _pool(op: Pool, time_steps: int, x: NDArray) -> NDArray:
    return _each(pool_map_reference if x.dtype == bool else pool_floats_reference, x)


def _pool_tokens(op: PoolTokens, time_steps: int, x: NDArray) -> NDArray:
    pooled = _each(lambda tokens: pool_tokens_reference(tokens.reshape(-1, x.shape[-1]), op.kernel), x)
    return pooled.reshape(x.shape)


def _add(op: Add, time_steps: int, stream: NDArray, x: NDArray) -> NDArray:
    if stream.dtype == np.float32:
        return add_floats_reference(stream, x)
    return add_spikes_reference(x, stream.astype(np.uint8))


def _attend(op: Attend, time_steps: int, query: NDArray, key: NDArray, value: NDArray) -> Floats:
    def heads(x: NDArray) -> NDArray:  # [T, B, H, W, C] to [T, B, h, N, d]
        return np.moveaxis(x.reshape(*x.shape[:2], -1, op.num_heads, x.shape[-1] // op.num_heads), 3, 2)

    mixed = np.empty(heads(value).shape, np.float32)
    for place in np.ndindex(mixed.shape[:3]):
        mixed[place] = attend_reference(heads(query)[place], heads(key)[place], heads(value)[place], op.scale)
    return np.moveaxis(mixed, 2, 3).reshape(value.shape)


def _read_out(op: ReadOut, time_steps: int, x: NDArray) -> Floats:
    head = read_out_floats_reference if x.dtype == np.float32 else read_out_reference
    logits = _each(lambda tokens: head(tokens.reshape(-1, x.shape[-1]), op.weights, op.bias), x)
    return np.broadcast_to(logits, (time_steps, *logits.shape[1:]))[:, :, None, None]


def _each(function: Callable[[NDArray], NDArray], x: NDArray) -> NDArray:
    """A function of one sample at one step, on [T, B, …]."""
    return np.stack([np.stack([function(sample) for sample in step]) for step in x])


_RUN: dict[type, Callable[..., NDArray]] = {
    Convolve: _convolve,
    Fire: _fire,
    Pool: _pool,
    PoolTokens: _pool_tokens,
    Add: _add,
    Attend: _attend,
    ReadOut: _read_out,
}
