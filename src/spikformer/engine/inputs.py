"""What enters an engine, checked: NumPy arrays or tensors as contiguous float32, and the state of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spikformer.config import NetworkShape, check_frame, check_frames
from spikformer.engine.ops import NeuronConstants
from spikformer.engine.program import Program
from spikformer.errors import FieldError, InputError
from spikformer.validation import is_integer


def as_frames(x: Any, size: NetworkShape) -> np.ndarray:
    """Static images [B, C, H, W] or event frames [T, B, C, H, W]."""
    array = _as_array(x)
    check_frames(array.shape, size)
    return _as_float32(array)


def as_frame(x: Any, size: NetworkShape) -> np.ndarray:
    """One frame [B, C, H, W] of a stream."""
    array = _as_array(x)
    if array.ndim != 4:
        raise FieldError("dimensions", f"step expects one frame [B, C, H, W], got {list(array.shape)}.")
    check_frame(array.shape, size)
    return _as_float32(array)


def _as_array(x: Any) -> np.ndarray:
    if hasattr(x, "detach"):  # a tensor, without importing torch to ask
        x = x.detach().cpu()
        x = (x.float() if x.is_floating_point() else x).numpy()  # bfloat16 has no NumPy name
    if not isinstance(x, np.ndarray):
        raise InputError("type", "a NumPy array or a tensor", type(x).__name__, "convert it with np.asarray")
    return x


def _as_float32(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f":
        fix = "scale the input as in training, then convert it with x.astype(np.float32)"
        raise InputError("dtype", "floats", array.dtype, fix)
    with np.errstate(over="ignore"):  # what does not fit float32 becomes infinity, and raises as such
        frames = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(frames).all():
        kind = "NaN" if np.isnan(frames).any() else "infinity"
        raise InputError("values", "finite inputs", kind, "check the data and its normalisation")
    return frames


@dataclass(frozen=True)
class EngineState:
    """The voltage of every neuron between two steps of a stream; in an order of the engine's own."""

    voltages: np.ndarray
    batch_size: int
    image_size: tuple[int, int]


def state_at_rest(program: Program, batch_size: int, image_size: tuple[int, int] | None) -> EngineState:
    """Every neuron at its reset voltage."""
    if not is_integer(batch_size) or batch_size < 1:
        raise FieldError("batch_size", f"batch_size must be an integer of at least 1, got {batch_size!r}.")
    if (image_size is None) == (program.image_size is None):
        given = "leaves image_size open; pass one" if image_size is None else "fixes image_size already"
        raise FieldError("image_size", f"This network {given}.")
    height, width = image_size or program.image_size or (0, 0)
    check_frame((1, program.in_channels, height, width), program)
    voltages = [
        np.full(int(batch_size) * size, neuron.v_reset, np.float32)
        for neuron, size in _voltages_of_a_sample(program, (height, width))
    ]
    return EngineState(np.concatenate(voltages), int(batch_size), (height, width))


def _voltages_of_a_sample(program: Program, image_size: tuple[int, int]) -> Iterator[tuple[NeuronConstants, int]]:
    """The neurons of each op with state, and how many voltages a sample has there.

    Channels are padded to whole words of 64, as the core keeps them.
    """
    values = program.values(*image_size)
    for number, op in program.state_ops():
        yield op.neuron, values[number].positions * (-(-values[number].channels // 64) * 64)


def take_samples(state: EngineState, indices: np.ndarray, program: Program) -> EngineState:
    """The state of some samples of a batch, by their indices."""
    parts, start = [], 0
    for _, size in _voltages_of_a_sample(program, state.image_size):
        end = start + state.batch_size * size
        parts.append(state.voltages[start:end].reshape(state.batch_size, -1)[indices].ravel())
        start = end
    return EngineState(np.concatenate(parts), len(indices), state.image_size)


def checked_voltages(state: EngineState, frame: np.ndarray, state_size: int) -> np.ndarray:
    """The voltages of a state that fits a frame [B, C, H, W]; `state_size` is how many a sample has."""
    given = (len(frame), (frame.shape[2], frame.shape[3]))
    if not isinstance(state, EngineState) or (state.batch_size, state.image_size) != given:
        raise FieldError(
            "state",
            "The state does not fit this frame; make one with initial_state(batch_size), carry it from step to step.",
        )
    expected = (state.batch_size * state_size,)
    voltages = np.asarray(state.voltages)
    if voltages.shape != expected or voltages.dtype != np.float32 or not np.isfinite(voltages).all():
        raise FieldError(
            "state",
            f"The state must hold {expected[0]} finite float32 voltages, as this engine's initial_state and step "
            "make them.",
        )
    return np.ascontiguousarray(voltages)
