"""Wrong use of an engine raises, and leaves it usable."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.mistakes import field_error, file_error, mistake

import spikformer as sf
from spikformer.engine import Engine
from spikformer.engine.native import INSTRUCTIONS
from spikformer.errors import InputError


@pytest.fixture(scope="module")
def engine(case):
    return sf.compile_engine(case()[0], num_threads=2)


@pytest.fixture(scope="module")
def images(case) -> np.ndarray:
    return case()[1].numpy()


@pytest.mark.parametrize(
    ("spoil", "field", "shown"),
    [
        (lambda x: x[0], "dimensions", 3),
        (lambda x: x[:, :2], "channels", 2),
        (lambda x: x[..., :-4], "size", "12×12"),
        (lambda x: x[:0], "batch", "[0, 3, 12, 16]"),
        (lambda x: x.astype(np.uint8), "dtype", "uint8"),
        (lambda x: x.astype(complex), "dtype", "complex128"),
        (lambda x: np.where(x > 1, np.nan, x), "values", "NaN"),
        (lambda x: np.where(x > 1, np.float32(np.inf), x), "values", "infinity"),
        (lambda x: x.astype(np.float64) * 1e300, "values", "infinity"),
        (lambda x: x.tolist(), "type", "list"),
        (lambda x: None, "type", "NoneType"),
        (lambda x: torch.zeros(5, 3, 12, 16, dtype=torch.int32), "dtype", "int32"),
    ],
)
def test_inputs(engine, images, spoil, field, shown) -> None:
    with mistake(InputError, shown, field=field):
        engine(spoil(images))


def test_more_tokens_than_can_be_counted_exactly(case) -> None:
    engine = sf.compile_engine(case(image_size=None, num_heads=1)[0])
    with mistake(ValueError, 174762, 176400):
        engine(np.zeros((1, 3, 1680, 1680), np.float32))


def test_any_layout_and_any_floats_are_welcome(engine, images) -> None:
    expected = engine(images)
    awkward = np.asfortranarray(images)
    assert not awkward.flags.c_contiguous
    np.testing.assert_array_equal(engine(awkward), expected)
    np.testing.assert_array_equal(engine(images[::-1])[::-1], expected)
    np.testing.assert_array_equal(engine(images.astype(np.float64)), expected)
    np.testing.assert_array_equal(engine(torch.from_numpy(images).requires_grad_()), expected)
    readonly = images.copy()
    readonly.flags.writeable = False
    np.testing.assert_array_equal(engine(readonly), expected)
    halves = torch.from_numpy(images).bfloat16()
    np.testing.assert_array_equal(engine(halves), engine(halves.float()))


def test_streams(engine, images) -> None:
    with field_error("dimensions", list(images[None].shape)):
        engine.step(images[None], engine.initial_state(5))
    with field_error("state"):
        engine.step(images, engine.initial_state(4))
    with field_error("state"):
        engine.step(images, None)
    with field_error("batch_size", 0):
        engine.initial_state(0)
    with field_error("image_size"):
        engine.initial_state(1, (12, 16))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda v: np.where(np.arange(v.size) == 7, np.float32(np.nan), v),
        lambda v: np.where(np.arange(v.size) == 7, np.float32(-np.inf), v),
        lambda v: v[:-1],
        lambda v: v.reshape(5, -1),
        lambda v: v.astype(np.float64),
        lambda v: None,
    ],
)
def test_voltages_that_are_not_a_state(engine, images, spoil) -> None:
    state = engine.initial_state(5)
    with field_error("state", state.voltages.size):
        engine.step(images, replace(state, voltages=spoil(state.voltages)))


def test_any_finite_voltage_is_a_state(engine, images) -> None:
    state = engine.initial_state(5)
    for voltage in (3e38, -3e38):
        logits, _ = engine.step(images, replace(state, voltages=np.full_like(state.voltages, voltage)))
        assert np.isfinite(logits).all()
    every_second = np.repeat(state.voltages, 2)[::2]
    np.testing.assert_array_equal(
        engine.step(images, replace(state, voltages=every_second))[0], engine.step(images, state)[0]
    )


def test_logits_that_are_not_finite_are_no_answer(engine, images, tmp_path) -> None:
    def with_head(weight: float, bias: float) -> Engine:
        *others, head = engine.program.ops
        head = replace(head, weights=head.weights * 0, bias=head.bias * 0)
        program = replace(engine.program, ops=(*others, head))
        head.weights[:], head.bias[:] = weight, bias  # behind the back of the program, which would raise
        return Engine(program)

    large = with_head(3e38, 0)
    large.save(tmp_path / "large.engine")
    with file_error(tmp_path / "large.engine", at="head.weights"):
        sf.load_engine(tmp_path / "large.engine")
    for call in (large, large.forward_steps, large.spikes, lambda x: large.step(x, large.initial_state(5))):
        with field_error("logits"):
            call(images)
    steps_alone = with_head(0, 3e38)
    assert np.isfinite(steps_alone.forward_steps(images)).all()
    with field_error("logits"):
        steps_alone(images)  # the sum over steps is not finite


@pytest.mark.parametrize("num_threads", [0, -1, 2.0, 5000])
def test_threads(case, num_threads) -> None:
    with field_error("num_threads", 1024, num_threads):
        sf.compile_engine(case()[0], num_threads)


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"neuron": "relu", "attention": "softmax"}, "neuron"),
        ({"attention": "softmax"}, "attention"),
        ({"v_reset": None}, "v_reset"),
    ],
)
def test_models_without_spikes(case, overrides, field) -> None:
    with field_error(field):
        sf.compile_engine(case(**overrides)[0])


def test_what_is_no_model_and_what_has_no_numbers(case) -> None:
    with field_error("model", "dict"):
        sf.compile_engine({})
    model, _ = case()
    model.head.bias.data[3] = torch.nan
    with field_error("weights"):
        sf.compile_engine(model)


def test_a_wrapped_model_is_compiled_as_itself(case) -> None:
    model, x = case()
    wrapped = torch.nn.DataParallel(model)
    np.testing.assert_array_equal(sf.compile_engine(wrapped)(x), sf.compile_engine(model)(x))


_ENDLESS = """
import resource, sys
import numpy as np
import spikformer as sf
engine = sf.load_engine(sys.argv[1])
x = np.random.default_rng(0).standard_normal((2, 3, 12, 16), dtype=np.float32)
before = engine(x)
frames = np.broadcast_to(x, (60_000, 2, 3, 12, 16)).astype(np.float32)
resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9, resource.RLIM_INFINITY))
try:
    engine(frames)
except MemoryError:
    print("no memory")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert (engine(x) == before).all()
"""


def test_it_works_after_a_call_that_had_no_memory(engine, tmp_path) -> None:
    engine.save(tmp_path / "net.engine")
    words = [sys.executable, "-c", _ENDLESS, tmp_path / "net.engine"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("no memory\n", 0), done.stderr


def test_a_model_in_training(case) -> None:
    with field_error("training"):
        sf.compile_engine(case()[0].train())


def test_modes_and_instruction_sets_that_do_not_exist(case, engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with field_error("mode", "auto", "events", "dense", "'fast'"):
        engine.mode = "fast"
    for density in (float("nan"), "0.5", 1.5):
        with field_error("density_threshold", repr(density)):
            engine.density_threshold = density
    monkeypatch.setenv(INSTRUCTIONS, "mmx")
    with mistake(ValueError, '"mmx"'):
        sf.compile_engine(case()[0])


def test_two_threads_may_call_one_engine(engine, images) -> None:
    expected, recorded = engine(images), engine.spikes(images)
    start = threading.Barrier(4)

    def call(index: int) -> None:
        start.wait(10)
        for _ in range(20):
            if index == 0:
                found = engine.spikes(images)
                assert all((found[name] == spikes).all() for name, spikes in recorded.items())
            else:
                np.testing.assert_array_equal(engine(images), expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(4)))


_WITHOUT_CORE = """
import sys
sys.modules["spikformer._native"] = None
import spikformer as sf
model = sf.create_model("spikformer_tiny_digits").eval()
try:
    sf.compile_engine(model)
except ImportError as error:
    print(error)
"""


def test_without_the_native_core_it_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_CORE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("The engine needs spikformer's native core"), done.stderr
    assert done.stdout.count("\n") == 1
