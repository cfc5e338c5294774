"""The kernels' binding checks its arguments: nothing that Python hands over may lead outside of an array."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.engine import drawn
from tests.engine.drawn import needs_integers
from tests.mistakes import mistake

from spikformer import _native

pytestmark = pytest.mark.core

BEST = _native.Kernels(drawn.BEST)
LAYER = BEST.pack(np.ones((70, 9, 3), np.float32), np.ones(70, np.float32))  # 576 inputs, 128 outputs when padded
SCALAR = _native.Kernels("scalar")
SCALAR_LAYER = SCALAR.pack(np.ones((70, 9, 3), np.float32), np.ones(70, np.float32))
NO_INTEGERS = ("scalar", "amx")
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


def shape(name: str, expected: str) -> tuple[object, ...]:
    return name, f"[{expected}]"


MISUSES: list[tuple[Callable[[], object], tuple[object, ...]]] = [
    (lambda: _native.Kernels("sse9"), ('"sse9"',)),
    (lambda: _native.Kernels(""), ('""',)),
    (lambda: BEST.pack(floats(2, 3), floats(2)), shape("weights", "outputs, neighbours, channels")),
    (lambda: BEST.pack(floats(2, 1, 3), floats(3)), shape("bias", "2")),
    (lambda: BEST.pack(floats(0, 1, 3), floats(0)), ()),
    (lambda: BEST.pack(floats(2, 1, 0), floats(2)), ()),
    (lambda: BEST.pack(floats(1, 1025, 1), floats(1)), (65536, 65600)),
    (lambda: BEST.list_events(words(4)), shape("spikes", "T, words")),
    (lambda: BEST.list_events(unaligned(1, 2)), shape("spikes", "T, words")),
    (lambda: BEST.list_events(words(0, 2)), (1, 4, 0)),
    (lambda: BEST.list_events(words(5, 2)), (1, 4, 5)),
    (lambda: BEST.list_events(words(1, 1025)), (65536, 65600)),
    (lambda: BEST.merge_events(words(0, 2, 1)), (1, 49, 0)),
    (lambda: BEST.merge_events(words(50, 2, 1)), (1, 49, 50)),
    (lambda: BEST.merge_counts(counts(50, 2, 64)), (1, 49, 50)),
    (lambda: BEST.merge_counts(counts(9, 2, 7296)), (65536,)),
    (lambda: BEST.merge_counts(counts(2, 2, 65)), ("counts", 64, 65)),
    (lambda: BEST.merge_events(words(9, 2, 114)), (65536,)),
    (lambda: BEST.merge_events(words(2, 5, 1)), (1, 4, 5)),
    (lambda: BEST.list_counts(counts(64)), shape("counts", "T, inputs")),
    (lambda: BEST.list_counts(counts(5, 64)), (1, 4, 5)),
    (lambda: BEST.list_counts(counts(2, 65)), ("counts", 64, 65)),
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
    (lambda: BEST.fire(floats(2, 1, 65), floats(65), NEURON, None), (64, 65)),
    (lambda: BEST.fire(floats(2, 3, 64), floats(128), NEURON, None), shape("bias", "64")),
    (lambda: BEST.fire(floats(2, 3, 64), floats(64), NEURON, floats(64)), shape("initial", "3, 64")),
    (lambda: BEST.fire(floats(2, 3, 64), floats(64), (1, 1, 0, 0), None), ("v_threshold", "v_reset")),
    (lambda: attend(128, key=words(4, 2)), shape("key", "3, 2")),
    (lambda: attend(64), ("head_dim", 0, 2, 64)),
    (lambda: attend(129), ("head_dim", 0, 2, 129)),
    (lambda: attend(-1), ("head_dim", 0, 2, -1)),
    (lambda: attend(0), ("head_dim", 0, 2, 0)),
    (lambda: attend(127, key=words(3, 2) - np.uint64(1)), ("head_dim", 0)),
    (lambda: attend(128, tokens=2**17 + 1, key=words(2**17 + 1, 2)), (2, 131073, 128)),
    (lambda: attend(128, order="value_first"), ("order", '"query_key_first"', '"value_first"')),
    (lambda: BEST.pool_map(words(4, 4)), shape("map", "height, width, depth")),
    (lambda: BEST.pool_map(words(3, 4, 1)), (3, 4)),
    (lambda: BEST.pool_tokens(words(4, 2), 2), ("kernel", 0, 2)),
    (lambda: BEST.pool_tokens(words(4, 2), -1), ("kernel", 0, -1)),
    (lambda: BEST.add_spikes(words(2), counts(127)), shape("counts", "128")),
    (lambda: BEST.expand_spikes(words(2, 2)), shape("spikes", "words")),
    (lambda: BEST.expand_counts(counts(2, 2)), shape("counts", "size")),
    (lambda: BEST.read_out(counts(0, 8), floats(2, 8), floats(2)), (1, 0)),
    (lambda: BEST.read_out(counts(1, 7), floats(2, 8), floats(2)), (8, 7)),
    (lambda: BEST.read_out(counts(1, 8), floats(2, 8), floats(3)), shape("bias", "2")),
]


@pytest.mark.parametrize(("call", "shown"), MISUSES)
def test_wrong_arrays_are_errors(call: Callable[[], object], shown: tuple[object, ...]) -> None:
    with mistake(ValueError, *shown):
        call()


def test_a_layer_is_read_only_by_kernels_with_its_tiles() -> None:
    if SCALAR.tile != BEST.tile:
        with mistake(ValueError, BEST.tile, SCALAR.tile):
            SCALAR.spike_linear(LAYER, words(1, 1, 9))


@needs_integers
def test_integers_want_rows_of_bytes_and_a_layer_that_was_packed_for_them() -> None:
    with mistake(ValueError, *shape("inputs", "rows, 576")):
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
