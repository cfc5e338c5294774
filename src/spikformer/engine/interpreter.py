"""Whole programs in plain NumPy, op by op on the kernels of `reference`: what an engine by events must equal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spikformer.engine.ops import Add, Attend, Convolve, Fire, Pool, PoolTokens, ReadOut
from spikformer.engine.program import Program
from spikformer.engine.reference import (
    Floats,
    Spikes,
    add_floats_reference,
    add_spikes_reference,
    attend_reference,
    count_linear_reference,
    dense_linear_reference,
    fire_reference,
    pool_floats_reference,
    pool_map_reference,
    pool_tokens_reference,
    read_out_floats_reference,
    read_out_reference,
)


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
