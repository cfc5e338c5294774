"""What each op computes and which shape it has, in NumPy, against PyTorch's functions where there is one."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.engine.drawn import NEURONS, draw_floats

from spikformer.engine.interpreter import run_reference
from spikformer.engine.ops import MAX_INPUTS, MAX_TOKENS, Value
from spikformer.engine.program import Builder, Program

STEPS, CHANNELS, HEADS = 3, 6, 2
NEURON = NEURONS[0]


class Trial:
    """A program around one op, run in NumPy on random frames [T, B, C, H, W] with spikes of a neuron for it to read."""

    def __init__(self, height: int = 5, width: int = 7, seed: int = 0) -> None:
        self.rng, self.build, self.size = np.random.default_rng(seed), Builder(), (height, width)
        eye = np.eye(CHANNELS, dtype=np.float32)[:, None, None]
        self.current = self.build.convolve("pixels", 0, eye, np.zeros(CHANNELS, np.float32))
        self.spikes = self.build.fire("spikes", self.current, NEURON)
        self.counts = self.build.add("counts", self.spikes, self.spikes)

    def other_spikes(self, x: int, channels: int = CHANNELS, outputs: int = CHANNELS) -> int:
        weights = draw_floats(self.rng, outputs, 1, 1, channels)
        return self.build.fire(
            f"other{len(self.build.ops)}",
            self.build.convolve(f"mix{len(self.build.ops)}", x, weights, np.zeros(outputs, np.float32)),
            NEURON,
        )

    def run(self, number: int) -> list[torch.Tensor]:
        """Every buffer as [T · B, C, H, W] in float64, up to the one whose number is given."""
        read = self.build.mean("mean", number)
        program = self.build.ops
        values = [Value("pixels", CHANNELS, *self.size, static=False)]
        for op in program:
            values.append(op.infer(*(values[index] for index in op.inputs)))
        channels = values[read].channels
        self.build.read_out("head", read, np.ones((1, channels), np.float32), np.zeros(1, np.float32))
        whole = Program(tuple(self.build.ops), CHANNELS, STEPS, self.size)
        frames = (2 * self.rng.standard_normal((STEPS, 2, CHANNELS, *self.size))).astype(np.float32)
        buffers = run_reference(whole, frames)
        for buffer, value in zip(buffers, whole.values(*self.size, static=False), strict=True):
            assert buffer.shape[2:] == (value.height, value.width, value.channels)
        return [torch.from_numpy(b.astype(np.float64)).flatten(0, 1).movedim(-1, 1) for b in buffers]


@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("kind", ["pixels", "spikes", "counts"])
def test_convolutions(kernel: int, stride: int, kind: str) -> None:
    trial = Trial(seed=kernel)
    weights, bias = draw_floats(trial.rng, 4, kernel, kernel, CHANNELS), draw_floats(trial.rng, 4)
    x = {"pixels": 0, "spikes": trial.spikes, "counts": trial.counts}[kind]
    number = trial.build.convolve("op", x, weights, bias, stride)
    buffers = trial.run(number)
    expected = F.conv2d(
        buffers[x],
        torch.from_numpy(weights.astype(np.float64)).movedim(-1, 1),
        torch.from_numpy(bias.astype(np.float64)),
        stride,
        kernel // 2,
    )
    torch.testing.assert_close(buffers[number], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", [3, 5, 7])
def test_depthwise_convolutions(kernel: int) -> None:
    trial = Trial()
    weights, bias = draw_floats(trial.rng, kernel, kernel, CHANNELS), draw_floats(trial.rng, CHANNELS)
    number = trial.build.convolve_depthwise("op", trial.spikes, weights, bias)
    buffers = trial.run(number)
    expected = F.conv2d(
        buffers[trial.spikes],
        torch.from_numpy(weights.astype(np.float64)).movedim(-1, 0)[:, None],
        torch.from_numpy(bias.astype(np.float64)),
        padding=kernel // 2,
        groups=CHANNELS,
    )
    torch.testing.assert_close(buffers[number], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("kind", ["current", "spikes", "counts"])
def test_pools(kernel: int, kind: str) -> None:
    trial = Trial(4, 6)
    x = getattr(trial, kind)
    number = trial.build.pool("op", x, kernel)
    buffers = trial.run(number)
    torch.testing.assert_close(buffers[number], F.max_pool2d(buffers[x], kernel, 2, (kernel - 1) // 2), rtol=0, atol=0)


def test_max_filters() -> None:
    trial = Trial()
    dilated = trial.build.dilate("dilated", trial.spikes)
    number = trial.build.dilate_heads("op", trial.spikes, HEADS)
    buffers = trial.run(number)
    spikes = buffers[trial.spikes]
    torch.testing.assert_close(buffers[dilated], F.max_pool2d(spikes, 3, 1, 1), rtol=0, atol=0)
    heads = spikes.flatten(2).unflatten(1, (HEADS, -1))  # [T · B, h, d, N]
    torch.testing.assert_close(
        buffers[number], F.max_pool2d(heads, 3, 1, 1).flatten(1, 2).view_as(spikes), rtol=0, atol=0
    )


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("form", ["same", "positions", "heads", "one head"])
def test_masks(form: str, inverted: bool) -> None:
    trial = Trial()
    heads = {"heads": HEADS, "one head": 1}.get(form, CHANNELS)
    if form == "positions":
        mask = trial.build.fire("mask", trial.build.sum_tokens("sum", trial.spikes), NEURONS[1])
    else:
        mask = trial.other_spikes(trial.spikes, outputs=heads)
    number = trial.build.conjunction("op", trial.spikes, mask, heads if form == "heads" else 1, inverted)
    buffers = trial.run(number)
    chosen = buffers[mask].repeat_interleave(CHANNELS // heads, 1)
    expected = buffers[trial.spikes] * (1 - chosen if inverted else chosen)
    torch.testing.assert_close(buffers[number], expected, rtol=0, atol=0)


def test_sums_and_means() -> None:
    trial = Trial()
    by_token = trial.build.sum_tokens("tokens", trial.spikes)
    by_head = trial.build.sum_heads("heads", trial.spikes, HEADS)
    means = {x: trial.build.mean(f"mean{x}", x) for x in (trial.current, trial.spikes, trial.counts)}
    buffers = trial.run(by_head)
    spikes = buffers[trial.spikes]
    torch.testing.assert_close(buffers[by_token], spikes.sum((2, 3), keepdim=True), rtol=0, atol=0)
    torch.testing.assert_close(buffers[by_head], spikes.unflatten(1, (HEADS, -1)).sum(2), rtol=0, atol=0)
    for x, number in means.items():
        expected = buffers[x].mean((2, 3), keepdim=True)
        torch.testing.assert_close(buffers[number].float(), expected.float(), rtol=0, atol=0)


SPIKES = Value("spikes", CHANNELS, 4, 6)


def infer(call: Callable[[Builder], int], *inputs: Value) -> Value:
    build = Builder()
    call(build)
    (op,) = build.ops
    return op.infer(*inputs)


def zeros(*shape: int) -> np.ndarray:
    return np.broadcast_to(np.float32(0), shape)


@pytest.mark.parametrize(
    ("call", "inputs"),
    [
        (lambda b: b.convolve("op", 0, zeros(4, 9, 9, CHANNELS), zeros(4)), [SPIKES]),
        (lambda b: b.convolve("op", 0, zeros(4, 3, 3, CHANNELS), zeros(4), 3), [SPIKES]),
        (lambda b: b.convolve("op", 0, zeros(4, 7, 7, MAX_INPUTS // 49), zeros(4)), [Value("counts", 1337, 4, 4)]),
        (lambda b: b.convolve_depthwise("op", 0, zeros(1, 1, CHANNELS), zeros(CHANNELS)), [SPIKES]),
        (lambda b: b.convolve_depthwise("op", 0, zeros(3, 3, 5), zeros(5)), [SPIKES]),
        (lambda b: b.convolve_depthwise("op", 0, zeros(3, 3, CHANNELS), zeros(4)), [SPIKES]),
        (lambda b: b.convolve_depthwise("op", 0, zeros(3, 3, 4), zeros(4)), [Value("counts", 4, 4, 4)]),
        (lambda b: b.pool("op", 0, 4), [SPIKES]),
        (lambda b: b.pool("op", 0, 2), [Value("spikes", CHANNELS, 4, 5)]),
        (lambda b: b.pool("op", 0), [Value("pixels", 3, 4, 4)]),
        (lambda b: b.dilate("op", 0), [Value("counts", 4, 4, 4)]),
        (lambda b: b.dilate_heads("op", 0, 4), [SPIKES]),
        (lambda b: b.dilate_heads("op", 0, 0), [SPIKES]),
        (lambda b: b.conjunction("op", 0, 1), [SPIKES, Value("counts", CHANNELS, 4, 6)]),
        (lambda b: b.conjunction("op", 0, 1), [SPIKES, Value("spikes", CHANNELS, 2, 3)]),
        (lambda b: b.conjunction("op", 0, 1), [SPIKES, Value("spikes", 2, 4, 6)]),
        (lambda b: b.conjunction("op", 0, 1, 2), [SPIKES, Value("spikes", CHANNELS, 4, 6)]),
        (lambda b: b.conjunction("op", 0, 1, 2), [SPIKES, Value("spikes", CHANNELS, 1, 1)]),
        (lambda b: b.conjunction("op", 0, 1, 4), [SPIKES, Value("spikes", 4, 4, 6)]),
        (lambda b: b.sum_tokens("op", 0), [Value("floats", 4, 4, 4)]),
        (lambda b: b.sum_tokens("op", 0), [Value("spikes", 4, 1, MAX_TOKENS + 1)]),
        (lambda b: b.sum_heads("op", 0, 4), [SPIKES]),
        (lambda b: b.sum_heads("op", 0, 2), [Value("counts", 4, 4, 4)]),
        (lambda b: b.mean("op", 0), [Value("pixels", 3, 4, 4)]),
        (lambda b: b.mean("op", 0), [Value("counts", 4, 1, MAX_TOKENS + 1)]),
        (lambda b: b.read_out("op", 0, zeros(2, 3), zeros(2)), [Value("pixels", 3, 4, 4)]),
    ],
)
def test_inputs_that_do_not_fit(call: Callable[[Builder], int], inputs: list[Value]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        infer(call, *inputs)


def test_a_stride_rounds_up_and_macs_count_what_is_left() -> None:
    build = Builder()
    build.convolve("conv", 0, np.ones((4, 7, 7, 3), np.float32), np.zeros(4, np.float32), 2)
    (op,) = build.ops
    x = Value("pixels", 3, 9, 12, static=True)
    assert op.infer(x) == Value("floats", 4, 5, 6, static=True)
    assert op.macs(x) == 5 * 6 * 4 * 49 * 3


def test_counts_stay_what_they_were_in_a_pool() -> None:
    counts = Value("counts", 4, 4, 4, largest=3)
    assert infer(lambda b: b.pool("op", 0, 2), counts) == Value("counts", 4, 2, 2, largest=3)
    assert infer(lambda b: b.mean("op", 0), counts) == Value("floats", 4, 1, 1)
