"""Whole programs in plain NumPy, op by op on the kernels of `reference`: what an engine by events must equal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spikformer.engine.ops import (
    Add,
    And,
    Attend,
    Convolve,
    DepthwiseConvolve,
    Dilate,
    DilateHeads,
    Fire,
    Mean,
    Pool,
    PoolTokens,
    ReadOut,
    SumHeads,
    SumTokens,
)
from spikformer.engine.program import Program
from spikformer.engine.reference import (
    Floats,
    Spikes,
    add_floats_reference,
    add_spikes_reference,
    and_spikes_reference,
    attend_reference,
    count_linear_reference,
    dense_linear_reference,
    depthwise_linear_reference,
    dilate_heads_reference,
    fire_reference,
    mean_reference,
    pool_counts_reference,
    pool_floats_reference,
    pool_map_reference,
    pool_tokens_reference,
    read_out_floats_reference,
    read_out_reference,
    spread_heads_reference,
    sum_heads_reference,
    sum_spikes_reference,
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
    windows = np.moveaxis(windows[:, :, :: op.stride, :: op.stride], 4, 6)
    rows = windows.reshape(*windows.shape[:4], -1)  # [T, B, H, W, k·k·C]
    weights = op.weights.reshape(len(op.weights), -1)
    if x.dtype == np.float32:
        currents = dense_linear_reference(rows.reshape(-1, rows.shape[-1]), weights).reshape(*rows.shape[:4], -1)
    else:
        counts = np.moveaxis(rows.reshape(len(x), -1, rows.shape[-1]), 0, 1).astype(np.uint8)  # [rows, T, K]
        currents = np.moveaxis(count_linear_reference(counts, weights), 1, 0).reshape(*rows.shape[:4], -1)
    return currents + op.bias


def _convolve_depthwise(op: DepthwiseConvolve, time_steps: int, x: NDArray) -> Floats:
    samples = [depthwise_linear_reference(np.moveaxis(sample, 0, 2), op.weights) for sample in np.moveaxis(x, 1, 0)]
    return np.moveaxis(np.stack(samples), 3, 0) + op.bias  # [B, H, W, T, C] to [T, B, H, W, C]


def _fire(op: Fire, time_steps: int, x: NDArray) -> Spikes:
    currents = np.broadcast_to(x.astype(np.float32), (time_steps, *x.shape[1:]))
    return fire_reference(currents, np.zeros(x.shape[-1], np.float32), op.neuron.as_tuple())[0]


def _pool(op: Pool, time_steps: int, x: NDArray) -> NDArray:
    twins: dict[str, Callable[..., NDArray]] = {
        "b": pool_map_reference,
        "u": pool_counts_reference,
        "f": pool_floats_reference,
    }
    return _each(lambda sample: twins[x.dtype.kind](sample, op.kernel), x)


def _pool_tokens(op: PoolTokens, time_steps: int, x: NDArray) -> NDArray:
    pooled = _each(lambda tokens: pool_tokens_reference(tokens.reshape(-1, x.shape[-1]), op.kernel), x)
    return pooled.reshape(x.shape)


def _dilate(op: Dilate, time_steps: int, x: NDArray) -> NDArray:
    return _each(lambda sample: pool_map_reference(sample, 3, 1), x)


def _dilate_heads(op: DilateHeads, time_steps: int, x: NDArray) -> NDArray:
    dilated = _each(lambda sample: dilate_heads_reference(sample.reshape(-1, x.shape[-1]), op.num_heads), x)
    return dilated.reshape(x.shape)


def _add(op: Add, time_steps: int, stream: NDArray, x: NDArray) -> NDArray:
    if stream.dtype == np.float32:
        return add_floats_reference(stream, x)
    return add_spikes_reference(x, stream.astype(np.uint8))


def _and(op: And, time_steps: int, x: NDArray, mask: NDArray) -> Spikes:
    if mask.shape[-1] != x.shape[-1]:
        mask = spread_heads_reference(mask, x.shape[-1] // op.num_heads)
    return and_spikes_reference(x, np.broadcast_to(mask, x.shape), op.inverted)


def _over_tokens(twin: Callable[[NDArray], NDArray], x: NDArray) -> Floats:
    """A sum over positions as a map of one, [T, B, 1, 1, C]."""
    return _each(lambda sample: twin(sample.reshape(-1, x.shape[-1])), x)[:, :, None, None].astype(np.float32)


def _sum_tokens(op: SumTokens, time_steps: int, x: NDArray) -> Floats:
    return _over_tokens(sum_spikes_reference, x)


def _sum_heads(op: SumHeads, time_steps: int, x: NDArray) -> Floats:
    return sum_heads_reference(x, op.num_heads)


def _mean(op: Mean, time_steps: int, x: NDArray) -> Floats:
    return _over_tokens(mean_reference, x)


def _attend(op: Attend, time_steps: int, query: NDArray, key: NDArray, value: NDArray) -> Floats:
    def heads(x: NDArray) -> NDArray:  # [T, B, H, W, C] to [T, B, h, N, d]
        return np.moveaxis(x.reshape(*x.shape[:2], -1, op.num_heads, x.shape[-1] // op.num_heads), 3, 2)

    mixed = np.empty(heads(value).shape, np.float32)
    for place in np.ndindex(mixed.shape[:3]):
        mixed[place] = attend_reference(heads(query)[place], heads(key)[place], heads(value)[place], op.scale)
    return np.moveaxis(mixed, 2, 3).reshape(value.shape)


def _read_out(op: ReadOut, time_steps: int, x: NDArray) -> Floats:
    head = read_out_floats_reference if x.dtype == np.float32 else read_out_reference  # of counts, or of spikes
    logits = _each(lambda tokens: head(tokens.reshape(-1, x.shape[-1]), op.weights, op.bias), x)
    return np.broadcast_to(logits, (time_steps, *logits.shape[1:]))[:, :, None, None]


def _each(function: Callable[[NDArray], NDArray], x: NDArray) -> NDArray:
    """A function of one sample at one step, on [T, B, …]."""
    return np.stack([np.stack([function(sample) for sample in step]) for step in x])


_RUN: dict[type, Callable[..., NDArray]] = {
    Convolve: _convolve,
    DepthwiseConvolve: _convolve_depthwise,
    Fire: _fire,
    Pool: _pool,
    PoolTokens: _pool_tokens,
    Dilate: _dilate,
    DilateHeads: _dilate_heads,
    Add: _add,
    And: _and,
    SumTokens: _sum_tokens,
    SumHeads: _sum_heads,
    Mean: _mean,
    Attend: _attend,
    ReadOut: _read_out,
}
