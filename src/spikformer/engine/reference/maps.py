"""Twins of the kernels without weights, and of attention and the readout: neurons, pools, masks, sums."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spikformer.engine.reference.products import Counts, Floats, Spikes


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


def pool_map_reference(spikes: Spikes, kernel: int = 3, stride: int = 2) -> Spikes:
    """Max-pool of a map [H, W, C]: 3×3 with padding 1, or 2×2. With stride 1 it is a max filter."""
    return _pool(spikes, kernel, stride, 0)


def pool_counts_reference(counts: Counts, kernel: int = 3, stride: int = 2) -> Counts:
    """The same of counts."""
    return _pool(counts, kernel, stride, 0)


def _pool(values: NDArray, kernel: int, stride: int, outside: float) -> NDArray:
    reach = (kernel - 1) // 2
    padded = np.pad(values, ((reach, reach), (reach, reach), (0, 0)), constant_values=outside)
    return sliding_window_view(padded, (kernel, kernel), axis=(0, 1))[::stride, ::stride].max(axis=(-2, -1))


def pool_tokens_reference(spikes: Spikes, kernel: int) -> Spikes:
    """Max-pool along tokens [N, C]: an odd kernel, stride 1, padding kernel // 2."""
    padded = np.pad(spikes, ((kernel // 2, kernel // 2), (0, 0)))
    return sliding_window_view(padded, kernel, axis=0).max(axis=-1)


def dilate_heads_reference(spikes: Spikes, num_heads: int) -> Spikes:
    """Max filter of tokens [N, C] over n ± 1 and the channels j ± 1 of each head."""
    heads = spikes.reshape(len(spikes), num_heads, -1).swapaxes(1, 2)  # [N, d, h]
    return _pool(heads, 3, 1, 0).swapaxes(1, 2).reshape(spikes.shape)


def and_spikes_reference(spikes: Spikes, mask: Spikes, inverted: bool) -> Spikes:
    """Spikes where the mask fires or, if it is inverted, where it does not."""
    return spikes & (mask ^ inverted)


def spread_heads_reference(heads: Spikes, head_dim: int) -> Spikes:
    """The spike of each head [h] for all of its channels, [h · d]."""
    return np.repeat(heads, head_dim, axis=-1)


def sum_heads_reference(spikes: Spikes, num_heads: int) -> Floats:
    """How many channels of each head fire, […, h] of spikes […, C]."""
    return spikes.reshape(*spikes.shape[:-1], num_heads, -1).sum(axis=-1).astype(np.float32)


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


def sum_spikes_reference(spikes: Spikes) -> NDArray[np.int32]:
    """How many tokens [N, C] fire in each channel."""
    return spikes.sum(axis=0, dtype=np.int32)


def sum_tokens_reference(counts: Counts, features: int) -> NDArray[np.int32]:
    """The sums over tokens [N, C] of the first features; the rest is padding."""
    return counts[:, :features].sum(axis=0, dtype=np.int32)


def mean_reference(values: NDArray) -> Floats:
    """The mean over tokens [N, C] of spikes, counts or floats: added one by one in float64, rounded once."""
    total = np.zeros(values.shape[1:], np.float64)
    for token in values:
        total += token
    return (total / len(values)).astype(np.float32)


def read_out_reference(counts: Counts, weights: Floats, bias: Floats) -> Floats:
    """The head's logits [K] of the mean over tokens: weights [K, D] · counts [N, ≥ D] / N + bias, in float64."""
    totals = sum_tokens_reference(counts, weights.shape[1])
    return (weights.astype(np.float64) @ totals / len(counts) + bias).astype(np.float32)


def add_floats_reference(a: Floats, b: Floats) -> Floats:
    """A residual sum of floats."""
    return a + b


def pool_floats_reference(values: Floats, kernel: int = 3) -> Floats:
    """Max-pool of a map [H, W, C] of floats, with stride 2: 3×3 with padding 1, or 2×2."""
    return _pool(values, kernel, 2, -np.inf)


def read_out_floats_reference(values: Floats, weights: Floats, bias: Floats) -> Floats:
    """The head's logits [K] of the mean over tokens [N, D] of floats, in float64."""
    return (weights.astype(np.float64) @ values.sum(axis=0, dtype=np.float64) / len(values) + bias).astype(np.float32)
