"""Random programs run by the native core are, buffer by buffer, what plain NumPy makes of them."""

import numpy as np
from hypothesis import given, settings
from tests.engine.drawn import SETS, assert_same_bits, seeds
from tests.engine.drawn_programs import draw_input, draw_program

from spikformer.engine.engine import Engine
from spikformer.engine.interpreter import run_reference
from spikformer.engine.ops import OP_NAMES, And, Op, Value
from spikformer.engine.program import Program
from spikformer.engine.reference import membranes_reference


def flat(buffer: np.ndarray) -> np.ndarray:
    """[T, B, H, W, C] as an engine's taps are: [T, B, positions, channels]."""
    return buffer.reshape(*buffer.shape[:2], -1, buffer.shape[-1])


def assert_runs_as_numpy(program: Program, seed: int, modes: tuple[str, ...]) -> None:
    """Logits, spikes and membranes, bit for bit, on every instruction set."""
    x = draw_input(program, seed)
    buffers = run_reference(program, x)
    logits = np.ascontiguousarray(buffers[-1][:, :, 0, 0])
    neurons = dict(program.state_ops())
    for instructions in SETS:
        engine = Engine(program, num_threads=1 + seed % 2, instructions=instructions)
        for mode in modes:
            engine.mode = mode
            assert_same_bits(engine.forward_steps(x), logits)
            spikes, membranes = engine.spikes(x), engine.membranes(x)
            assert list(spikes) == list(membranes) == [op.name for op in neurons.values()]
            for number, op in neurons.items():
                np.testing.assert_array_equal(spikes[op.name], flat(buffers[number]))
                currents = flat(buffers[op.inputs[0]]).astype(np.float32)
                currents = np.broadcast_to(currents, (len(logits), *currents.shape[1:]))
                expected = membranes_reference(currents, op.neuron.as_tuple())
                np.testing.assert_array_equal(membranes[op.name], expected)


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_random_programs_are_what_numpy_makes_of_them(seed: int) -> None:
    assert_runs_as_numpy(draw_program(seed), seed, ("events", "dense"))


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_events_round_as_numpy_does(seed: int) -> None:
    assert_runs_as_numpy(draw_program(seed, rounded=True), seed, ("events",))


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_a_stream_carries_every_voltage(seed: int) -> None:
    """Step by step as all at once: sums of eighths are exact in any order."""
    program = draw_program(seed)
    shape = (3, 2, program.in_channels, *program.image_size)
    frames = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
    engine = Engine(program, num_threads=1 + seed % 2)
    engine.mode = "events"
    state, steps = engine.initial_state(2), []
    for frame in frames:
        logits, state = engine.step(frame, state)
        steps.append(logits)
    assert_same_bits(np.stack(steps), engine.forward_steps(frames))


def test_random_programs_have_every_op_and_every_input() -> None:
    """Else the two tests above would say less than they seem to."""
    seen, masks, windows = set(), set(), set()
    for seed in range(1000):
        program = draw_program(seed)
        values = program.values(*program.image_size)
        seen |= {(OP_NAMES[type(op)], values[op.inputs[0]].kind) for op in program.ops}
        masks |= {(op.form(*(values[x] for x in op.inputs)), op.inverted) for op in program.ops if isinstance(op, And)}
        windows |= {window_of(op, values[op.inputs[0]]) for op in program.ops}
    maps = ("floats", "spikes", "counts")
    assert seen == {
        *(("convolve", kind) for kind in ("pixels", "spikes", "counts")),
        *((name, kind) for name in ("fire", "pool", "add", "mean", "read_out") for kind in maps),
        *((name, "spikes") for name in ("convolve_depthwise", "pool_tokens", "dilate", "dilate_heads", "and")),
        *((name, "spikes") for name in ("sum_tokens", "sum_heads", "attend")),
    }
    assert masks == {(form, inverted) for form in ("same", "positions", "heads") for inverted in (False, True)}
    for kind in ("pixels", "spikes", "counts"):
        assert windows >= {(kind, kernel, stride) for kernel in (1, 3, 5, 7) for stride in (1, 2, 4)}


def window_of(op: Op, x: Value) -> tuple[str, int, int]:
    return x.kind, getattr(op, "kernel", 0), getattr(op, "stride", 0)
