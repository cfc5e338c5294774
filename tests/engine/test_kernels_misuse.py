"""The kernels' binding checks its arguments: nothing that Python hands over may lead outside of an array."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from tests.engine import drawn
from tests.engine.drawn import needs_integers

from spikformer import _native

pytestmark = pytest.mark.core

BEST = _native.Kernels(drawn.BEST)
LAYER = BEST.pack(np.ones((70, 9, 3), np.float32), np.ones(70, np.float32))  # 576 inputs, 128 outputs when padded
SCALAR = _native.Kernels("scalar")
SCALAR_LAYER = SCALAR.pack(np.ones((70, 9, 3), np.float32), np.ones(70, np.float32))
NO_INTEGERS = r"The instruction set scalar does not multiply integers; amx does, .*"
NEURON = (0.5, 1.0, 1.0, 0.0)


def words(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint64)


def counts(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint8)


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def unaligned(*shape: int) -> np.ndarray:
    """Words that begin one byte behind where a word may."""
    return np.zeros(8 * int(np.prod(shape)) + 1, np.uint8)[1:].view(np.uint64).reshape(shape)


def attend(head_dim: int, key: np.ndarray | None = None, order: str = "key_value_first", tokens: int = 3) -> np.ndarray:
    spikes = words(tokens, 2)
    return BEST.attend(spikes, spikes if key is None else key, spikes, head_dim, 1.0, order)


def shape(name: str, expected: str) -> str:
    return re.escape(f"{name} must be aligned and contiguous with shape [{expected}], got shape [") + r".*\]\."


REFUSALS: list[tuple[Callable[[], object], str]] = [
    (lambda: _native.Kernels("sse9"), r'This machine cannot run the instruction set "sse9"; scalar runs .*\.'),
    (lambda: _native.Kernels(""), r'This machine cannot run the instruction set ""; scalar runs .*\.'),
    (lambda: BEST.pack(floats(2, 3), floats(2)), shape("weights", "outputs, neighbours, channels")),
    (lambda: BEST.pack(floats(2, 1, 3), floats(3)), shape("bias", "2")),
    (lambda: BEST.pack(floats(0, 1, 3), floats(0)), "A layer needs at least one output, .*"),
    (lambda: BEST.pack(floats(2, 1, 0), floats(2)), "A layer needs at least one output, .*"),
    (lambda: BEST.pack(floats(1, 1025, 1), floats(1)), r"A layer has at most 65536 inputs, .*, got 65600\."),
    (lambda: BEST.list_events(words(4)), shape("spikes", "T, words")),
    (lambda: BEST.list_events(unaligned(1, 2)), shape("spikes", "T, words")),
    (lambda: BEST.list_events(words(0, 2)), r"A group has 1 to 4 steps, got 0\."),
    (lambda: BEST.list_events(words(5, 2)), r"A group has 1 to 4 steps, got 5\."),
    (lambda: BEST.list_events(words(1, 1025)), r"A row has at most 65536 inputs, got 65600\."),
    (lambda: BEST.merge_events(words(0, 2, 1)), r"A row has 1 to 49 parts, got 0\."),
    (lambda: BEST.merge_events(words(50, 2, 1)), r"A row has 1 to 49 parts, got 50\."),
    (lambda: BEST.merge_counts(counts(50, 2, 64)), r"A row has 1 to 49 parts, got 50\."),
    (lambda: BEST.merge_counts(counts(9, 2, 7296)), r"A row has at most 65536 inputs\."),
    (lambda: BEST.merge_counts(counts(2, 2, 65)), r"counts must fill whole words of 64, got 65\."),
    (lambda: BEST.merge_events(words(9, 2, 114)), r"A row has at most 65536 inputs\."),
    (lambda: BEST.merge_events(words(2, 5, 1)), r"A group has 1 to 4 steps, got 5\."),
    (lambda: BEST.list_counts(counts(64)), shape("counts", "T, inputs")),
    (lambda: BEST.list_counts(counts(5, 64)), r"A group has 1 to 4 steps, got 5\."),
    (lambda: BEST.list_counts(counts(2, 65)), r"counts must fill whole words of 64, got 65\."),
    (lambda: BEST.spike_linear(LAYER, words(2, 3, 8)), shape("spikes", "rows, T, 9")),
    (lambda: BEST.spike_linear(LAYER, words(2, 3, 18)[..., ::2]), shape("spikes", "rows, T, 9")),
    (lambda: BEST.spike_linear(LAYER, words(3, 2, 9).swapaxes(0, 1)), shape("spikes", "rows, T, 9")),
    (lambda: BEST.spike_linear(LAYER, np.broadcast_to(words(1, 3, 9), (2, 3, 9))), shape("spikes", "rows, T, 9")),
    (lambda: BEST.count_linear(LAYER, counts(2, 3, 27)), shape("counts", "rows, T, 576")),
    (lambda: BEST.dense_linear(LAYER, floats(2, 27)), shape("inputs", "rows, 576")),
    (lambda: SCALAR.integer_linear(SCALAR_LAYER, counts(2, 576)), NO_INTEGERS),
    (lambda: SCALAR.expand_bytes(words(2)), NO_INTEGERS),
    (lambda: BEST.count_spikes(words(2, 2)), shape("spikes", "words")),
    (lambda: BEST.count_active(counts(2, 2)), shape("counts", "size")),
    (lambda: BEST.fire(floats(2, 64), floats(64), NEURON, None), shape("currents", "T, rows, width")),
    (lambda: BEST.fire(floats(2, 1, 65), floats(65), NEURON, None), r"The width must be a multiple of 64, got 65\."),
    (lambda: BEST.fire(floats(2, 3, 64), floats(128), NEURON, None), shape("bias", "64")),
    (lambda: BEST.fire(floats(2, 3, 64), floats(64), NEURON, floats(64)), shape("initial", "3, 64")),
    (lambda: BEST.fire(floats(2, 3, 64), floats(64), (1, 1, 0, 0), None), "v_threshold must be above v_reset: .*"),
    (lambda: attend(128, key=words(4, 2)), shape("key", "3, 2")),
    (lambda: attend(64), r"head_dim must be above 0 and fill 2 words, got 64\."),
    (lambda: attend(129), r"head_dim must be above 0 and fill 2 words, got 129\."),
    (lambda: attend(-1), r"head_dim must be above 0 and fill 2 words, got -1\."),
    (lambda: attend(0), r"head_dim must be above 0 and fill 2 words, got 0\."),
    (lambda: attend(127, key=words(3, 2) - np.uint64(1)), r"Bits beyond head_dim must be 0\."),
    (lambda: attend(128, tokens=2**17 + 1, key=words(2**17 + 1, 2)), r"Tokens .* 2\^24, .*, got 131073 times 128\."),
    (lambda: attend(128, order="value_first"), r'order must be "query_key_first" or .*, got "value_first"\.'),
    (lambda: BEST.pool_map(words(4, 4)), shape("map", "height, width, depth")),
    (lambda: BEST.pool_map(words(3, 4, 1)), r"Height and width must be even, got 3 and 4\."),
    (lambda: BEST.pool_tokens(words(4, 2), 2), r"kernel must be odd and above 0, got 2\."),
    (lambda: BEST.pool_tokens(words(4, 2), -1), r"kernel must be odd and above 0, got -1\."),
    (lambda: BEST.add_spikes(words(2), counts(127)), shape("counts", "128")),
    (lambda: BEST.expand_spikes(words(2, 2)), shape("spikes", "words")),
    (lambda: BEST.expand_counts(counts(2, 2)), shape("counts", "size")),
    (lambda: BEST.read_out(counts(0, 8), floats(2, 8), floats(2)), r"There must be between 1 and .* tokens, got 0\."),
    (lambda: BEST.read_out(counts(1, 7), floats(2, 8), floats(2)), r"The head reads 8 features, .* have only 7\."),
    (lambda: BEST.read_out(counts(1, 8), floats(2, 8), floats(3)), shape("bias", "2")),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSALS)
def test_wrong_arrays_are_refused_in_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        call()


def test_a_layer_is_read_only_by_kernels_with_its_tiles() -> None:
    if SCALAR.tile != BEST.tile:
        with pytest.raises(ValueError, match=r"packed in tiles of \d+, but these kernels read tiles of \d+; pack it"):
            SCALAR.spike_linear(LAYER, words(1, 1, 9))


@needs_integers
def test_integers_want_rows_of_bytes_and_a_layer_that_was_packed_for_them() -> None:
    with pytest.raises(ValueError, match=shape("inputs", "rows, 576")):
        BEST.integer_linear(LAYER, counts(2, 27))
    with pytest.raises(ValueError, match=r"^The layer was packed without integers; pack it with the same .*\.$"):
        BEST.integer_linear(_native.Kernels("avx512").pack(floats(2, 9, 3), floats(2)), counts(2, 576))
    assert BEST.integer_linear(LAYER, counts(0, 576)).shape == (0, 128)


@pytest.mark.parametrize(
    "call",
    [
        lambda: BEST.expand_spikes(floats(2)),
        lambda: BEST.expand_counts(words(2)),
        lambda: BEST.spike_linear(None, words(1, 1, 9)),
        lambda: BEST.spike_linear(_native.PackedLayer(), words(1, 1, 9)),
    ],
)
def test_other_types_are_not_converted(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        call()


def test_nothing_in_gives_nothing_out() -> None:
    assert BEST.spike_linear(LAYER, words(0, 3, 9)).shape == (0, 3, 128)
    assert BEST.spike_linear(LAYER, words(2**50, 0, 9)).shape == (2**50, 0, 128)
    assert BEST.count_linear(LAYER, counts(3, 0, 576)).shape == (3, 0, 128)
    assert BEST.dense_linear(LAYER, floats(0, 576)).shape == (0, 128)
    for order in ("query_key_first", "key_value_first"):
        assert attend(128, tokens=0, key=words(0, 2), order=order).shape == (0, 128)
    assert BEST.pool_tokens(words(2**50, 0), 3).shape == (2**50, 0)
    assert BEST.list_events(words(4, 0))[0].shape == (0,)
    assert BEST.list_counts(counts(4, 0))[1].shape == (0,)
