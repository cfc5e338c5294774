"""Random programs of every op, and inputs for them."""

from collections.abc import Callable

import numpy as np
from tests.engine.drawn import NEURONS, draw_floats

from spikformer.engine.ops import Value
from spikformer.engine.program import Builder, Program


class Draft:
    """A random program in the making. Weights are multiples of 1/8, so that every sum is exact in any order.

    Unless they are `rounded`: then products of spikes and counts have any weights, and only events are exact.
    """

    def __init__(self, rng: np.random.Generator, *, rounded: bool) -> None:
        self.rng, self.build, self.rounded = rng, Builder(), rounded
        side = int(rng.choice([4, 8]))
        self.values = [Value("pixels", int(rng.integers(1, 4)), side, 2 * side, static=True)]

    def infer(self) -> None:
        """Of the op that was added last."""
        op = self.build.ops[-1]
        self.values.append(op.infer(*(self.values[index] for index in op.inputs)))

    def find(self, *kinds: str, shape: tuple[int, ...] | None = None) -> int | None:
        fitting = [
            number
            for number, value in enumerate(self.values)
            if value.kind in kinds and (shape is None or value.shape == shape)
        ]
        return int(self.rng.choice(fitting)) if fitting else None

    def eighths(self, *shape: int) -> np.ndarray:
        return (self.rng.integers(-6, 7, shape) / 8).astype(np.float32)

    def weights(self, kind: str, *shape: int) -> np.ndarray:
        return draw_floats(self.rng, *shape) if self.rounded and kind != "pixels" else self.eighths(*shape)

    def name(self) -> str:
        return f"op{len(self.build.ops)}"

    def heads(self, channels: int) -> int:
        return int(self.rng.choice([heads for heads in (1, 2, 4, 8) if channels % heads == 0]))

    def convolve(self) -> None:
        kinds = ("pixels", "spikes", "spikes", "counts", "counts")
        x = self.find(kinds[self.rng.integers(len(kinds))]) or 0
        kind, channels = self.values[x].kind, self.values[x].channels
        kernels = [1, 3, 5, 7] if channels <= 8 else [1, 1, 3]  # NumPy adds event by event
        kernel, stride = int(self.rng.choice(kernels)), int(self.rng.choice([1, 1, 2, 4]))
        outputs = int(self.rng.choice([8, 8, 64, 80]))
        weights = self.weights(kind, outputs, kernel, kernel, channels)
        self.build.convolve(self.name(), x, weights, self.eighths(outputs), stride)

    def convolve_depthwise(self) -> None:
        if (x := self.find("spikes")) is not None:
            channels, kernel = self.values[x].channels, int(self.rng.choice([3, 5, 7]))
            weights = self.weights("spikes", kernel, kernel, channels)
            self.build.convolve_depthwise(self.name(), x, weights, self.eighths(channels))

    def fire(self) -> None:
        if (x := self.find("floats", "spikes", "counts")) is not None:
            self.build.fire(self.name(), x, NEURONS[self.rng.integers(len(NEURONS))])

    def pool(self) -> None:
        x = self.find("floats", "spikes", "counts")
        if x is not None and self.values[x].height % 2 == self.values[x].width % 2 == 0:
            self.build.pool(self.name(), x, int(self.rng.choice([2, 3])))

    def pool_tokens(self) -> None:
        if (x := self.find("spikes")) is not None:
            self.build.pool_tokens(self.name(), x, int(self.rng.choice([1, 3, 5])))

    def dilate(self) -> None:
        if (x := self.find("spikes")) is not None:
            self.build.dilate(self.name(), x)

    def dilate_heads(self) -> None:
        if (x := self.find("spikes")) is not None:
            self.build.dilate_heads(self.name(), x, self.heads(self.values[x].channels))

    def add(self) -> None:
        stream = self.find("floats", "spikes", "counts")
        if stream is not None:
            kind = "floats" if self.values[stream].kind == "floats" else "spikes"
            x = self.find(kind, shape=self.values[stream].shape)
            if x is not None:
                self.build.add(self.name(), stream, x)

    def conjunction(self) -> None:
        """With a mask of any form that there is one of."""
        if (x := self.find("spikes")) is None:
            return
        channels, *size = self.values[x].shape
        num_heads = self.heads(channels)
        forms = [((channels, *size), 1), ((channels, 1, 1), 1), ((num_heads, *size), num_heads)]
        shape, heads = forms[self.rng.integers(len(forms))]
        if (mask := self.find("spikes", shape=shape)) is not None:
            self.build.conjunction(self.name(), x, mask, heads, bool(self.rng.random() < 0.5))

    def sum_tokens(self) -> None:
        if (x := self.find("spikes")) is not None:
            self.build.sum_tokens(self.name(), x)

    def sum_heads(self) -> None:
        if (x := self.find("spikes")) is not None:
            self.build.sum_heads(self.name(), x, self.heads(self.values[x].channels))

    def gate(self) -> None:
        """Masks by sums, which chance takes long to find."""
        if self.find("spikes") is not None:
            (self.sum_tokens if self.rng.random() < 0.5 else self.sum_heads)()
            self.infer()
            self.build.fire(self.name(), len(self.build.ops), NEURONS[1])

    def stage(self) -> None:
        """A product and what an engine runs together with it: a neuron, a pool before it, or a stream."""
        self.convolve()
        self.infer()
        current = len(self.build.ops)
        value = self.values[current]
        tail = self.rng.integers(3)
        if tail == 0 and value.height % 2 == value.width % 2 == 0:
            self.build.pool(self.name(), current, int(self.rng.choice([2, 3])))
            self.infer()
        elif tail == 1 and (stream := self.find("floats", shape=value.shape)) is not None:
            first, second = (stream, current) if self.rng.random() < 0.7 else (current, stream)
            self.build.add(self.name(), first, second)
            self.infer()
        self.build.fire(self.name(), len(self.build.ops), NEURONS[self.rng.integers(len(NEURONS))])

    def mean(self) -> None:
        if (x := self.find("floats", "spikes", "counts")) is not None:
            self.build.mean(self.name(), x)

    def attend(self) -> None:
        if (value := self.find("spikes")) is not None:
            query, key = (self.find("spikes", shape=self.values[value].shape) for _ in range(2))
            heads = self.heads(self.values[value].channels)
            self.build.attend(self.name(), query, key, value, heads, 0.25)

    def draw(self, step: Callable[[], None]) -> None:
        step()
        if len(self.values) == len(self.build.ops):  # it added one
            self.infer()

    def finish(self) -> Program:
        x = self.find("floats", "counts", "spikes")
        channels = self.values[x].channels
        self.build.read_out("head", x, self.eighths(5, channels), self.eighths(5))
        first = self.values[0]
        return Program(tuple(self.build.ops), first.channels, 3, (first.height, first.width))


def draw_program(seed: int, *, rounded: bool = False) -> Program:
    draft = Draft(np.random.default_rng(seed), rounded=rounded)
    draft.draw(draft.convolve)
    draft.draw(draft.fire)
    steps: list[Callable[[], None]] = [
        draft.convolve,
        draft.convolve_depthwise,
        draft.stage,
        draft.stage,
        draft.fire,
        draft.fire,
        draft.pool,
        draft.pool_tokens,
        draft.dilate,
        draft.dilate_heads,
        draft.add,
        draft.add,
        draft.gate,
        draft.conjunction,
        draft.conjunction,
        draft.sum_tokens,
        draft.sum_heads,
        draft.mean,
        draft.attend,
    ]
    for _ in range(int(draft.rng.integers(2, 16))):
        draft.draw(steps[draft.rng.integers(len(steps))])
    return draft.finish()


def draw_input(program: Program, seed: int) -> np.ndarray:
    """Static images, or frames of another number of steps."""
    rng = np.random.default_rng(seed)
    shape = (2, program.in_channels, *program.image_size)
    return rng.integers(-4, 5, shape if rng.random() < 0.5 else (5, *shape)).astype(np.float32)
