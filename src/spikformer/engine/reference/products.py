"""Twins of the kernels that list events and multiply, and how spikes are packed into words."""

from __future__ import annotations

import numpy as np
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


def merge_counts_reference(parts: Counts) -> tuple[NDArray[np.uint16], Floats, NDArray[np.uint32]]:
    """The events of a row of counts made of parts [parts, T ≤ 4, C], with their counts."""
    return list_counts_reference(np.concatenate(list(parts), axis=1))


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


def depthwise_linear_reference(spikes: Spikes, weights: Floats) -> Floats:
    """Currents [H, W, T, C] of a depthwise convolution of spikes [H, W, T, C] with weights [k, k, C], padding ⌊k/2⌋.

    Neighbours are added one by one, row by row of the window.
    """
    kernel, (height, width) = len(weights), spikes.shape[:2]
    reach = kernel // 2
    padded = np.pad(spikes, ((reach, reach), (reach, reach), (0, 0), (0, 0)))
    currents = np.zeros(spikes.shape, np.float32)
    for y, x in np.ndindex(kernel, kernel):
        currents += np.where(padded[y : y + height, x : x + width], weights[y, x], np.float32(0))
    return currents


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
