"""Programs: random ones run by the native core are, buffer by buffer, what plain NumPy makes of them."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from tests.engine.drawn import SETS, assert_same_bits, draw_floats, quickly, seeds

from spikformer import _native
from spikformer.engine.engine import Engine
from spikformer.engine.program import Add, Attend, Builder, Convolve, Fire, Neuron, Pool, Program, ReadOut, Value
from spikformer.engine.reference import run_reference

NEURONS = (Neuron(0.5, 1, 1, 0), Neuron(1, 0, 1, 0), Neuron(0.25, 1, 0.5, -0.25))  # LIF, IF, a neuron with a rest


def shape_of(value: Value) -> tuple[int, int, int]:
    return value.channels, value.height, value.width


class Draft:
    """A random program in the making. Weights are multiples of 1/8, so that every sum is exact in any order."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.build = rng, Builder()
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
        self.push(Convolve(self.name(), (x,), self.eighths(outputs, kernel, kernel, channels), self.eighths(outputs)))

    def fire(self) -> None:
        if (x := self.find("floats", "spikes")) is not None:
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


def draw_program(seed: int) -> Program:
    draft = Draft(np.random.default_rng(seed))
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


@given(seed=seeds)
@quickly
def test_random_programs_are_what_numpy_makes_of_them(seed: int) -> None:
    program, rng = draw_program(seed), np.random.default_rng(seed)
    shape = (2, program.in_channels, *program.image_size)
    x = rng.integers(-4, 5, shape if rng.random() < 0.5 else (5, *shape)).astype(np.float32)
    buffers = run_reference(program, x)
    instructions = SETS[seed % len(SETS)]
    engine = Engine(program, num_threads=1 + seed % 2, instructions=instructions)
    for mode in ("events", "dense"):
        engine.mode = mode
        assert_same_bits(engine.forward_steps(x), np.ascontiguousarray(buffers[-1][:, :, 0, 0]))
        recorded = engine.spikes(x)
        assert list(recorded) == [op.name for _, op in program.state_ops()]
        for number, op in program.state_ops():
            expected = buffers[number].reshape(*buffers[number].shape[:2], -1, buffers[number].shape[-1])
            np.testing.assert_array_equal(recorded[op.name], expected)


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


def test_interventions() -> None:
    rng = np.random.default_rng(0)
    program = tiny(
        Convolve("conv", (0,), draw_floats(rng, 4, 3, 3, 1), draw_floats(rng, 4)),
        Fire("fire", (1,), NEURONS[0]),
        Add("sum", (2, 2)),
    )
    x = draw_floats(rng, 3, 1, 4, 4)
    engine = Engine(program)
    before = engine.spikes(x)["fire"]
    with engine.intervene("fire", silence=[1, 2]):
        silenced = engine.spikes(x)["fire"]
    with engine.intervene("fire", noise=0.3, seed=1):
        noisy, again = engine.spikes(x)["fire"], engine.spikes(x[:2])["fire"]
    np.testing.assert_array_equal(silenced, before & np.array([True, False, False, True]))
    assert (noisy >= before).all()
    assert 0.1 < (noisy & ~before).mean() / (~before).mean() < 0.5
    np.testing.assert_array_equal(noisy[:, :2], again)  # whatever else is in the batch
    np.testing.assert_array_equal(engine.spikes(x)["fire"], before)
    for wrong in ({"silence": [4]}, {"noise": 1.5}, {}):
        with pytest.raises(ValueError, match=r"silence|noise"), engine.intervene("fire", **wrong):
            pass
    with pytest.raises(ValueError, match="conv"), engine.intervene("conv", noise=0.1):
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
        lambda program: program.fire("more", 3, (0.5, 1.0, 1.0, 0.0)),
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
