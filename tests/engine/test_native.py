"""The native core is safe to build from any arrays: wrong ones raise, and none is read beyond its end."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.engine.drawn import SETS
from tests.mistakes import mistake

from spikformer import _native


def native_program() -> _native.Program:
    """Pixels of 3 channels, a product, neurons and a residual sum."""
    program = _native.Program(SETS[-1], 3)
    program.convolve("conv", 0, np.zeros((3, 3, 3, 3), np.float32), np.zeros(3, np.float32))
    program.fire("fire", 1, (0.5, 1.0, 1.0, 0.0))
    program.add("sum", 2, 2)
    return program


def complete() -> _native.Engine:
    program = native_program()
    program.read_out("head", 3, np.zeros((2, 3), np.float32), np.arange(2, dtype=np.float32))
    return program.engine(1)


def test_a_complete_native_program_answers() -> None:
    logits = np.empty((4, 1, 2), np.float32)
    complete().run(np.zeros((1, 3, 2, 2), np.float32), 4, None, None, logits)
    assert (logits == [0, 1]).all()


@pytest.mark.parametrize(
    "build",
    [
        lambda program: program.engine(1),
        lambda program: program.convolve("more", 9, np.zeros((3, 1, 1, 3), np.float32), np.zeros(3, np.float32)),
        lambda program: program.convolve("more", 2, np.zeros((3, 1, 1, 4), np.float32), np.zeros(3, np.float32)),
        lambda program: program.convolve("more", 2, np.zeros((3, 2, 2, 3), np.float32), np.zeros(3, np.float32)),
        lambda program: program.convolve("more", 2, np.zeros((3, 1, 1, 3), np.float32), np.zeros(2, np.float32)),
        lambda program: program.convolve("more", 2, np.full((3, 1, 1, 3), np.nan, np.float32), np.zeros(3, np.float32)),
        lambda program: program.convolve("more", 2, np.zeros((3, 1, 1, 3), np.float32), np.full(3, np.inf, np.float32)),
        lambda program: program.convolve("more", 2, np.zeros((0, 1, 1, 3), np.float32), np.zeros(0, np.float32)),
        lambda program: program.fire("fire", 1, (0.5, 1.0, 1.0, 0.0)),
        lambda program: program.fire("more", 1, (0.5, 1.0, 0.0, 0.0)),
        lambda program: program.fire("more", 0, (0.5, 1.0, 1.0, 0.0)),
        lambda program: program.attend("more", 2, 2, 2, 2, 1.0),
        lambda program: program.attend("more", 2, 2, 2, 0, 1.0),
        lambda program: program.attend("more", 2, 2, 2, 1, float("nan")),
        lambda program: program.pool_tokens("more", 2, 2),
        lambda program: program.convolve("more", 2, np.zeros((3, 9, 9, 3), np.float32), np.zeros(3, np.float32)),
        lambda program: program.convolve("more", 2, np.zeros((3, 1, 1, 3), np.float32), np.zeros(3, np.float32), 3),
        lambda program: program.convolve("more", 2, np.zeros((3, 1, 1, 3), np.float32), np.zeros(3, np.float32), 0),
        lambda program: program.convolve_depthwise("more", 2, np.zeros((1, 1, 3), np.float32), np.zeros(3, np.float32)),
        lambda program: program.convolve_depthwise("more", 2, np.zeros((3, 3, 4), np.float32), np.zeros(4, np.float32)),
        lambda program: program.convolve_depthwise("more", 2, np.zeros((3, 3, 3), np.float32), np.zeros(4, np.float32)),
        lambda program: program.convolve_depthwise("more", 3, np.zeros((3, 3, 3), np.float32), np.zeros(3, np.float32)),
        lambda program: program.pool("more", 2, 4),
        lambda program: program.pool("more", 0),
        lambda program: program.dilate("more", 3),
        lambda program: program.dilate_heads("more", 2, 2),
        lambda program: program.dilate_heads("more", 2, 0),
        lambda program: program.and_("more", 2, 3, 1, False),
        lambda program: program.and_("more", 2, 2, 2, False),
        lambda program: program.and_("more", 2, 2, 0, False),
        lambda program: program.sum_tokens("more", 3),
        lambda program: program.sum_heads("more", 2, 2),
        lambda program: program.mean("more", 0),
        lambda program: program.mean("more", 9),
        lambda program: program.read_out("more", 0, np.zeros((2, 3), np.float32), np.zeros(2, np.float32)),
        lambda program: program.read_out("more", 3, np.zeros((2, 4), np.float32), np.zeros(2, np.float32)),
    ],
)
def test_native_ops_that_do_not_fit(build: Callable[[_native.Program], object]) -> None:
    with pytest.raises(ValueError, match=r"more|fire|complete"):
        build(native_program())


def test_a_mask_of_another_size_is_found_when_the_size_is_known() -> None:
    program = native_program()
    program.pool("pool", 2, 2)
    program.and_("mask", 2, 4, 1, False)
    program.read_out("head", 5, np.zeros((2, 3), np.float32), np.zeros(2, np.float32))
    engine, logits = program.engine(1), np.empty((1, 1, 2), np.float32)
    with mistake(ValueError, "mask"):
        engine.run(np.zeros((1, 3, 4, 4), np.float32), 1, None, None, logits)
    engine.run(np.zeros((1, 3, 2, 2), np.float32), 1, None, None, logits)  # one position is a mask for all


@pytest.mark.parametrize(("size", "time_steps"), [(2, 2**50), (2**28, 1)])
def test_sizes_that_overflow_are_no_memory(size: int, time_steps: int) -> None:
    frames, logits = np.empty((0, 3, size, size), np.float32), np.empty((time_steps, 0, 2), np.float32)
    with pytest.raises(MemoryError):
        complete().run(frames, time_steps, None, None, logits)


@pytest.mark.parametrize("mode", [-1, 3, 2**31 - 1])
def test_a_native_mode_is_one_of_three(mode: int) -> None:
    engine = complete()
    with mistake(ValueError, "mode", 0, 1, 2):
        engine.mode = mode
    assert engine.mode == 0


def test_a_call_of_no_samples_takes_no_memory() -> None:
    engine = complete()
    engine.run(np.empty((0, 3, 2, 2), np.float32), 2**38, None, None, np.empty((2**38, 0, 2), np.float32))
    assert engine.buffer_bytes == 0
