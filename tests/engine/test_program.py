"""Programs and their ops check themselves: what does not fit names its op, and the limits are those of the core."""

import numpy as np
import pytest
from tests.engine.drawn import NEURONS, program_of_every_op
from tests.mistakes import field_error

from spikformer import _native
from spikformer.engine.native import MOST_THREADS
from spikformer.engine.ops import (
    MAX_ATTENTION,
    MAX_COUNT,
    MAX_INPUTS,
    MAX_TOKENS,
    OP_NAMES,
    Add,
    Attend,
    Convolve,
    Fire,
    NeuronConstants,
    ReadOut,
)
from spikformer.engine.program import Program


def test_macs_of_each_product() -> None:
    program = tiny(conv(kernel=3), Fire("fire", (1,), NEURONS[0]), Attend("mix", (2, 2, 2), 2, 0.5), in_channels=1)
    assert program.macs(4, 4) == {"conv": 16 * 9 * 4, "mix": 2 * 16 * 4 * 2, "head": 2 * 4}


def tiny(*ops: object, in_channels: int = 1) -> Program:
    head = ReadOut("head", (len(ops),), np.ones((2, 4), np.float32), np.zeros(2, np.float32))
    return Program((*ops, head), in_channels, 2, (4, 4))


def conv(name: str = "conv", x: int = 0, outputs: int = 4, kernel: int = 1, channels: int = 1) -> Convolve:
    return Convolve(name, (x,), np.ones((outputs, kernel, kernel, channels), np.float32), np.zeros(outputs, np.float32))


def test_it_prints_a_line_for_each_op() -> None:
    program = program_of_every_op()
    first, *lines = repr(program).splitlines()
    assert f"T = {program.time_steps}" in first
    assert len(lines) == len(program.ops)
    for number, (line, op) in enumerate(zip(lines, program.ops, strict=True), 1):
        assert line.split()[:3] == [str(number), OP_NAMES[type(op)], op.name]


@pytest.mark.parametrize(
    ("ops", "named"),
    [
        ((conv(kernel=2),), "conv"),
        ((conv(channels=2),), "conv"),
        ((conv(), conv("more", 1, channels=4)), "more"),  # a product of floats
        ((conv(), Fire("fire", (2,), NEURONS[0])), "fire"),  # reads what is not written yet
        ((conv(), Fire("conv", (1,), NEURONS[0])), "name"),
        ((conv(), Fire("fire", (1,), NEURONS[0]), Attend("attend", (2, 2, 2), 3, 0.25)), "attend"),
        ((conv(), Fire("fire", (1,), NEURONS[0]), Add("add", (1, 2))), "add"),
        ((conv(outputs=3),), "head"),
        ((Convolve("conv", (0,), np.full((4, 1, 1, 1), np.nan, np.float32), np.zeros(4, np.float32)),), "conv.weights"),
        ((Convolve("conv", (0,), np.ones((4, 1, 1, 1)), np.zeros(4, np.float32)),), "conv.weights"),
    ],
)
def test_a_program_that_does_not_fit_names_its_op(ops, named) -> None:
    with field_error(named):
        tiny(*ops)


def test_limits_are_those_of_the_native_core() -> None:
    ours = {"max_count": MAX_COUNT, "max_inputs": MAX_INPUTS, "max_attention": MAX_ATTENTION, "max_tokens": MAX_TOKENS}
    assert ours | {"max_threads": MOST_THREADS} == _native.limits


def test_residual_sums_that_would_overflow() -> None:
    ops = [conv(), Fire("fire", (1,), NEURONS[0])]
    for index in range(255):
        ops.append(Add(f"add{index}", (len(ops) if index else 2, 2)))
    with field_error("add254"):
        tiny(*ops)
    assert tiny(*ops[:-1]).values(4, 4)[-2].largest == 255


@pytest.mark.parametrize("constants", [(0.5, 1, 0, 0), (0.5, 1, 1e-300, 0), (np.inf, 1, 1, 0), (0.5, 1, 1e7, 0)])
def test_neurons_that_would_never_rest(constants) -> None:
    with field_error("neuron"):
        NeuronConstants(*constants)
