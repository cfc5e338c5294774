"""Programs: random ones run by the native core are, buffer by buffer, what plain NumPy makes of them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from tests.engine.drawn import SETS, assert_same_bits, draw_floats, seeds

from spikformer import _native
from spikformer.engine.engine import Engine
from spikformer.engine.native import MOST_THREADS
from spikformer.engine.program import (
    MAX_ATTENTION,
    MAX_COUNT,
    MAX_INPUTS,
    OP_NAMES,
    Add,
    Attend,
    Builder,
    Convolve,
    Fire,
    Neuron,
    Pool,
    Program,
    ReadOut,
    Value,
)
from spikformer.engine.reference import membranes_reference, run_reference

NEURONS = (Neuron(0.5, 1, 1, 0), Neuron(1, 0, 1, 0), Neuron(0.25, 1, 0.5, -0.25))  # LIF, IF, a neuron with a rest


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


def test_macs_of_each_product() -> None:
    program = tiny(conv(kernel=3), Fire("fire", (1,), NEURONS[0]), Attend("mix", (2, 2, 2), 2, 0.5), in_channels=1)
    assert program.macs(4, 4) == {"conv": 16 * 9 * 4, "mix": 2 * 16 * 4 * 2, "head": 2 * 4}


def tiny(*ops: object, in_channels: int = 1) -> Program:
    head = ReadOut("head", (len(ops),), np.ones((2, 4), np.float32), np.zeros(2, np.float32))
    return Program((*ops, head), in_channels, 2, (4, 4))


def conv(name: str = "conv", x: int = 0, outputs: int = 4, kernel: int = 1, channels: int = 1) -> Convolve:
    return Convolve(name, (x,), np.ones((outputs, kernel, kernel, channels), np.float32), np.zeros(outputs, np.float32))


@pytest.mark.parametrize(
    ("ops", "named"),
    [
        ((conv(kernel=2),), "conv"),
        ((conv(channels=2),), "conv"),
        ((conv(), conv("more", 1, channels=4)), "more"),  # a product of floats
        ((conv(), Fire("fire", (2,), NEURONS[0])), "fire"),  # reads what is not written yet
        ((conv(), Fire("conv", (1,), NEURONS[0])), "different names"),
        ((conv(), Fire("fire", (1,), NEURONS[0]), Attend("attend", (2, 2, 2), 3, 0.25)), "attend"),
        ((conv(), Fire("fire", (1,), NEURONS[0]), Add("add", (1, 2))), "add"),
        ((conv(outputs=3),), "head"),
        ((Convolve("conv", (0,), np.full((4, 1, 1, 1), np.nan, np.float32), np.zeros(4, np.float32)),), "conv"),
        ((Convolve("conv", (0,), np.ones((4, 1, 1, 1)), np.zeros(4, np.float32)),), "conv"),
    ],
)
def test_a_program_that_does_not_fit_names_its_op(ops, named) -> None:
    with pytest.raises(ValueError, match=named):
        tiny(*ops)


def test_limits_are_those_of_the_native_core() -> None:
    ours = {"max_count": MAX_COUNT, "max_inputs": MAX_INPUTS, "max_attention": MAX_ATTENTION}
    assert ours | {"max_threads": MOST_THREADS} == _native.limits


def test_residual_sums_that_would_overflow() -> None:
    ops = [conv(), Fire("fire", (1,), NEURONS[0])]
    for index in range(255):
        ops.append(Add(f"add{index}", (len(ops) if index else 2, 2)))
    with pytest.raises(ValueError, match="add254"):
        tiny(*ops)
    assert tiny(*ops[:-1]).values(4, 4)[-2].largest == 255


@pytest.mark.parametrize("constants", [(0.5, 1, 0, 0), (0.5, 1, 1e-300, 0), (np.inf, 1, 1, 0), (0.5, 1, 1e7, 0)])
def test_neurons_that_would_never_rest(constants) -> None:
    with pytest.raises(ValueError, match="neuron"):
        Neuron(*constants)


@pytest.fixture(scope="module")
def small() -> Engine:
    rng = np.random.default_rng(0)
    return Engine(
        tiny(
            Convolve("conv", (0,), draw_floats(rng, 4, 3, 3, 1), draw_floats(rng, 4)),
            Fire("fire", (1,), NEURONS[0]),
            Convolve("second", (2,), draw_floats(rng, 4, 1, 1, 4), draw_floats(rng, 4)),
            Fire("last", (3,), NEURONS[0]),
            Add("sum", (4, 4)),
        )
    )


IMAGES = draw_floats(np.random.default_rng(1), 3, 1, 4, 4)


def test_taps_of_some_neurons(small: Engine) -> None:
    spikes, membranes = small.spikes(IMAGES, ["last"]), small.membranes(IMAGES, ["last"])
    assert list(spikes) == list(membranes) == ["last"]
    np.testing.assert_array_equal(spikes["last"], membranes["last"] >= 1)
    with pytest.raises(ValueError, match="conv"):
        small.membranes(IMAGES, ["conv"])


def test_silence_and_noise(small: Engine) -> None:
    before = small.spikes(IMAGES)["fire"]
    with small.intervene("fire", silence=[1, 2]):
        silenced = small.spikes(IMAGES)["fire"]
    with small.intervene("fire", noise=0.3, seed=1):
        noisy, again = small.spikes(IMAGES)["fire"], small.spikes(IMAGES[:2])["fire"]
    np.testing.assert_array_equal(silenced, before & np.array([True, False, False, True]))
    assert (noisy >= before).all()
    assert 0.1 < (noisy & ~before).mean() / (~before).mean() < 0.5
    np.testing.assert_array_equal(noisy[:, :2], again)  # whatever else is in the batch
    np.testing.assert_array_equal(small.spikes(IMAGES)["fire"], before)


def test_replaced_spikes_are_what_the_rest_of_the_network_sees(small: Engine) -> None:
    logits, before = small.forward_steps(IMAGES), small.spikes(IMAGES)
    other = np.random.default_rng(2).random(before["fire"].shape) < 0.5
    with small.intervene("fire", replace=other):
        after = small.spikes(IMAGES)
        np.testing.assert_array_equal(after["fire"], other)
        assert (after["last"] != before["last"]).any()
        with small.intervene("fire", replace=before["fire"]):  # the last one counts
            assert_same_bits(small.forward_steps(IMAGES), logits)
        with pytest.raises(ValueError, match="fire"):
            small(IMAGES[:2])
        with small.intervene("fire", silence=[0]):
            np.testing.assert_array_equal(small.spikes(IMAGES)["fire"], other & (np.arange(4) > 0))
    assert_same_bits(small.forward_steps(IMAGES), logits)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"silence": [4]},
        {"noise": 1.5},
        {"replace": np.zeros((2, 3, 16, 4))},
        {"replace": np.zeros((2, 3, 16, 5), bool)},
        {"replace": np.zeros((3, 16, 4), bool)},
        {"replace": np.zeros((2, 0, 16, 4), bool)},
    ],
)
def test_interventions_that_cannot_be(small: Engine, wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"silence|replace|spikes"), small.intervene("fire", **wrong):
        pass


def test_interventions_name_neurons(small: Engine) -> None:
    with pytest.raises(ValueError, match="conv"), small.intervene("conv", noise=0.1):
        pass


# The native core is safe to build from any arrays: wrong ones raise, and none is read beyond its end.


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
        lambda program: program.read_out("more", 2, np.zeros((2, 3), np.float32), np.zeros(2, np.float32)),
        lambda program: program.read_out("more", 3, np.zeros((2, 4), np.float32), np.zeros(2, np.float32)),
    ],
)
def test_native_ops_that_do_not_fit(build: Callable[[_native.Program], object]) -> None:
    with pytest.raises(ValueError, match=r"more|fire|complete"):
        build(native_program())


@pytest.mark.parametrize(("size", "time_steps"), [(2, 2**50), (2**28, 1)])
def test_sizes_that_overflow_are_no_memory(size: int, time_steps: int) -> None:
    frames, logits = np.empty((0, 3, size, size), np.float32), np.empty((time_steps, 0, 2), np.float32)
    with pytest.raises(MemoryError):
        complete().run(frames, time_steps, None, None, logits)


@pytest.mark.parametrize("mode", [-1, 3, 2**31 - 1])
def test_a_native_mode_is_one_of_three(mode: int) -> None:
    engine = complete()
    with pytest.raises(ValueError, match="mode must be 0, 1 or 2"):
        engine.mode = mode
    assert engine.mode == 0


def test_a_call_of_no_samples_takes_no_memory() -> None:
    engine = complete()
    engine.run(np.empty((0, 3, 2, 2), np.float32), 2**38, None, None, np.empty((2**38, 0, 2), np.float32))
    assert engine.buffer_bytes == 0
