"""Random programs run by the native core are, buffer by buffer, what plain NumPy makes of them."""

from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import given, settings
from tests.engine.drawn import NEURONS, SETS, assert_same_bits, draw_floats, seeds

from spikformer.engine.engine import Engine
from spikformer.engine.interpreter import run_reference
from spikformer.engine.ops import (
    OP_NAMES,
    Add,
    Attend,
    Convolve,
    Fire,
    Pool,
    ReadOut,
    Value,
)
from spikformer.engine.program import Builder, Program
from spikformer.engine.reference import membranes_reference


def shape_of(value: Value) -> tuple[int, int, int]:
    return value.channels, value.height, value.width


class Draft:
    """A random program in the making. Weights are multiples of 1/8, so that every sum is exact in any order.

    Unless they are `rounded`: then products of spikes and counts have any weights, and only events are exact.
    """

    def __init__(self, rng: np.random.Generator, *, rounded: bool) -> None:
        self.rng, self.build, self.rounded = rng, Builder(), rounded
        side = int(rng.choice([4, 8]))
        self.values = [Value("pixels", int(rng.integers(1, 4)), side, 2 * side, static=True)]

    def push(self, op: object) -> int:
        number = self.build(op)
        self.values.append(op.infer(*(self.values[index] for index in op.inputs)))
        return number

    def find(self, *kinds: str, like: Value | None = None) -> int | None:
        fitting = [
            number
            for number, value in enumerate(self.values)
            if value.kind in kinds
            and (
                like is None or (value.channels, value.height, value.width) == (like.channels, like.height, like.width)
            )
        ]
        return int(self.rng.choice(fitting)) if fitting else None

    def eighths(self, *shape: int) -> np.ndarray:
        return (self.rng.integers(-6, 7, shape) / 8).astype(np.float32)

    def name(self) -> str:
        return f"op{len(self.build.ops)}"

    def convolve(self) -> None:
        x = self.find("pixels", "spikes", "counts")
        kind, channels = self.values[x].kind, self.values[x].channels
        kernel = 1 if kind == "counts" else int(self.rng.choice([1, 3]))
        outputs = int(self.rng.choice([8, 64, 80]))
        draw = partial(draw_floats, self.rng) if self.rounded and kind != "pixels" else self.eighths
        self.push(Convolve(self.name(), (x,), draw(outputs, kernel, kernel, channels), self.eighths(outputs)))

    def fire(self) -> None:
        if (x := self.find("floats", "spikes", "counts")) is not None:
            self.push(Fire(self.name(), (x,), NEURONS[self.rng.integers(len(NEURONS))]))

    def pool(self) -> None:
        x = self.find("floats", "spikes")
        if x is not None and self.values[x].height > 2:
            self.push(Pool(self.name(), (x,)))

    def pool_tokens(self) -> None:
        if (x := self.find("spikes")) is not None:
            self.build.pool_tokens(self.name(), x, int(self.rng.choice([1, 3, 5])))
            self.values.append(self.values[x])

    def add(self) -> None:
        stream = self.find("floats", "spikes", "counts")
        if stream is not None:
            kind = "floats" if self.values[stream].kind == "floats" else "spikes"
            x = self.find(kind, like=self.values[stream])
            if x is not None:
                self.push(Add(self.name(), (stream, x)))

    def attend(self) -> None:
        if (value := self.find("spikes")) is not None:
            query, key = (self.find("spikes", like=self.values[value]) for _ in range(2))
            self.push(Attend(self.name(), (query, key, value), int(self.rng.choice([1, 2, 4])), 0.25))

    def finish(self) -> Program:
        x = self.find("floats", "counts")
        channels = self.values[x].channels
        self.push(ReadOut("head", (x,), self.eighths(5, channels), self.eighths(5)))
        first = self.values[0]
        return Program(tuple(self.build.ops), first.channels, 3, (first.height, first.width))


def draw_program(seed: int, *, rounded: bool = False) -> Program:
    draft = Draft(np.random.default_rng(seed), rounded=rounded)
    draft.convolve()
    draft.fire()
    steps: list[Callable[[], None]] = [
        draft.convolve,
        draft.fire,
        draft.fire,
        draft.pool,
        draft.pool_tokens,
        draft.add,
        draft.attend,
    ]
    for _ in range(int(draft.rng.integers(2, 14))):
        steps[draft.rng.integers(len(steps))]()
    return draft.finish()


def draw_input(program: Program, seed: int) -> np.ndarray:
    """Static images, or frames of another number of steps."""
    rng = np.random.default_rng(seed)
    shape = (2, program.in_channels, *program.image_size)
    return rng.integers(-4, 5, shape if rng.random() < 0.5 else (5, *shape)).astype(np.float32)


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


def test_random_programs_have_every_op_and_every_input() -> None:
    """Else the two tests above would say less than they seem to."""
    seen = set()
    for seed in range(200):
        program = draw_program(seed)
        values = program.values(*program.image_size)
        seen |= {(OP_NAMES[type(op)], values[op.inputs[0]].kind) for op in program.ops}
    assert seen == {
        ("convolve", "pixels"),
        ("convolve", "spikes"),
        ("convolve", "counts"),
        ("fire", "floats"),
        ("fire", "spikes"),
        ("fire", "counts"),
        ("pool", "floats"),
        ("pool", "spikes"),
        ("pool_tokens", "spikes"),
        ("add", "floats"),
        ("add", "spikes"),
        ("add", "counts"),
        ("attend", "spikes"),
        ("read_out", "floats"),
        ("read_out", "counts"),
    }
