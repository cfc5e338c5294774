"""Every allocation of the native core fails once, and every thread it starts: an error each time, never a crash."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.drawn import program_of_every_op

import spikformer as sf
from spikformer.engine.file import write_compiled
from spikformer.engine.program import Compiled

_SOURCE = Path(__file__).parent.parent / "native" / "failing_allocations.cpp"

_FAIL_EACH = """
import ctypes, json, sys
import numpy as np
from spikformer.engine import Engine
from spikformer.engine.file import read_compiled

hook = ctypes.CDLL(None)
hook.allocations_seen.restype = ctypes.c_long
hook.fail_allocation.argtypes = [ctypes.c_long]
compiled = read_compiled(sys.argv[1])
shape = (2, compiled.program.in_channels, *compiled.program.image_size)
x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)

def fresh():
    engine = Engine(compiled, 3)
    engine.density_threshold = 0.1
    return engine

expected, state = fresh()(x), fresh().initial_state(2)
stepped = fresh().step(x, state)[0]
operations = {
    "build": (0, lambda _: fresh()),
    "call": (1, lambda engine: engine(x)),
    "step": (1, lambda engine: engine.step(x, state)),
    "profile": (1, lambda engine: engine.profile(x)),
    "spikes": (1, lambda engine: engine.spikes(x)),
}
needs_engine, operation = operations[sys.argv[2]]
assert hook.watch_allocations(b"_native")
counts = {"MemoryError": 0, "RuntimeError": 0, "none": 0}
number = 0 if needs_engine else 1  # the first of a new object is of nanobind, which ends the process without it
while True:
    engine = fresh() if needs_engine else None
    hook.fail_allocation(number)
    try:
        operation(engine)
        error = "none"
    except (MemoryError, RuntimeError) as raised:
        error = type(raised).__name__
    seen = hook.allocations_seen()
    hook.fail_allocation(-1)
    counts[error] += 1
    done = seen <= number
    if needs_engine or done:
        engine = engine or fresh()
        assert (engine(x) == expected).all()
        assert (engine.step(x, state)[0] == stepped).all()
    if done:
        break
    number += 1
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def interposer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("interposer") / "failing_allocations.so"
    words = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", _SOURCE, "-o", library]
    subprocess.run(words, check=True, timeout=120)
    return library


@pytest.mark.parametrize(
    ("network", "operation"),
    [
        ("every op", "build"),
        *(pytest.param("every op", each, marks=pytest.mark.slow) for each in ("call", "step", "profile", "spikes")),
        pytest.param("spikformer", "call", marks=pytest.mark.slow),
    ],
)
def test_after_each_failure_the_next_call_gives_the_same_bits(interposer, case, tmp_path, network, operation) -> None:
    path = tmp_path / "net.engine"
    if network == "spikformer":
        sf.compile_engine(case("spikformer_tiny_digits", depth=1)[0]).save(path)
    else:
        write_compiled(Compiled(program_of_every_op()), path)
    done = subprocess.run(
        [sys.executable, "-c", _FAIL_EACH, path, operation],
        env=os.environ | {"LD_PRELOAD": str(interposer)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["MemoryError"] > 50
    assert counts["RuntimeError"] == (0 if operation == "build" else 2)  # helpers that could not be started
    assert counts["none"] == 1
