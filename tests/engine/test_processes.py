"""Engines in other processes: forked, spawned, pickled; and how many threads one has there."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spikformer as sf
from spikformer.engine.native import MOST_THREADS, cpu_quota, usable_threads

_START = """
import faulthandler, os, signal, sys, threading
import numpy as np
import spikformer as sf
faulthandler.dump_traceback_later(150, exit=True)
engine = sf.load_engine(sys.argv[1], 3)
x = np.random.default_rng(0).standard_normal((2, 3, 12, 16), dtype=np.float32)
before = engine(x)

def child_agrees():
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends a child that hangs
        os._exit(0 if (engine(x) == before).all() and (engine(x[:1]) == before[:1]).all() else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

_FORK_IDLE = """
assert child_agrees()
assert (engine(x) == before).all()
"""

_FORK_INSIDE_A_CALL = """
stop = threading.Event()

def keep_calling():
    while not stop.is_set():
        engine(np.tile(x, (4, 1, 1, 1)))

threads = [threading.Thread(target=keep_calling) for _ in range(2)]
for thread in threads:
    thread.start()
agreed = [child_agrees() for _ in range(10)]
stop.set()
for thread in threads:
    thread.join()
assert all(agreed), agreed
assert (engine(x) == before).all()
"""

_FORK_IN_TWO_THREADS = """
other = sf.load_engine(sys.argv[1], 2)
agreed = []
threads = [threading.Thread(target=lambda: agreed.extend(child_agrees() for _ in range(5))) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert agreed == [True] * 10, agreed
"""

_FORK_IN_A_SIGNAL_HANDLER = """
agreed = []
signal.signal(signal.SIGUSR1, lambda *_: agreed.append(child_agrees()))
with engine._running:  # as in the middle of a call
    os.kill(os.getpid(), signal.SIGUSR1)
assert agreed == [True], agreed
assert (engine(x) == before).all()
"""

_POOLS = """
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import spikformer as sf

if __name__ == "__main__":
    engine = sf.load_engine(sys.argv[1], 2)
    x = np.random.default_rng(0).standard_normal((3, 3, 12, 16), dtype=np.float32)
    before = engine(x)
    for method in ("fork", "spawn"):
        with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
            for row, answer in enumerate(pool.map(engine, [x[i : i + 1] for i in range(3)], timeout=60)):
                assert (answer[0] == before[row]).all(), method
"""


@pytest.fixture(scope="module")
def saved(case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "net.engine"
    sf.compile_engine(case()[0]).save(path)
    return path


@pytest.mark.parametrize(
    "code",
    [_FORK_IDLE, _FORK_INSIDE_A_CALL, _FORK_IN_TWO_THREADS, _FORK_IN_A_SIGNAL_HANDLER],
    ids=["idle", "inside a call", "in two threads", "in a signal handler"],
)
def test_a_forked_child_gives_the_same_bits(saved: Path, code: str) -> None:
    words = [sys.executable, "-c", _START + code, saved]
    done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr


def test_pools_of_processes_take_an_engine(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "pools.py").write_text(_POOLS)
    words = [sys.executable, tmp_path / "pools.py", saved]
    done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["auto", "events", "dense"])
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_a_copy_has_the_options_and_gives_the_same_bits(case, mode, again) -> None:
    model, x = case()
    engine = sf.compile_engine(model, num_threads=3)
    engine.mode = mode
    engine.density_threshold = 0.25
    other = again(engine)
    assert other is not engine
    assert (other.num_threads, other.mode, other.density_threshold) == (3, mode, 0.25)
    assert (other.config, other.card) == (engine.config, engine.card)
    np.testing.assert_array_equal(other(x), engine(x))


def test_a_threshold_that_was_not_set_is_measured_by_the_copy(case) -> None:
    other = copy.copy(sf.compile_engine(case()[0]))
    assert other.density_threshold is None


def test_a_stream_goes_on_in_a_copy(case) -> None:
    model, x = case(batch_size=2)
    engine = sf.compile_engine(model)
    _, state = engine.step(x, engine.initial_state(2))
    other, other_state = pickle.loads(pickle.dumps((engine, state)))
    np.testing.assert_array_equal(other.step(x, other_state)[0], engine.step(x, state)[0])


@pytest.mark.parametrize(
    ("wanted", "threads"),
    [("1", 1), ("7", 7), (" 3 ", 3), ("5,2", 5), ("2000", MOST_THREADS), ("9" * 5000, MOST_THREADS)],
)
def test_omp_num_threads_is_the_default(case, monkeypatch: pytest.MonkeyPatch, wanted: str, threads: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    assert usable_threads() == threads
    assert sf.compile_engine(case()[0]).num_threads == threads
    assert sf.compile_engine(case()[0], num_threads=2).num_threads == 2


@pytest.mark.parametrize("wanted", ["", "0", "-2", "many", "1.5", "²", "0x4"])
def test_what_is_no_number_of_threads_does_not_count(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    expected = usable_threads()
    assert 1 <= expected <= len(os.sched_getaffinity(0))
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    assert usable_threads() == expected


@pytest.mark.parametrize(
    ("quotas", "cores"),
    [
        ({}, MOST_THREADS),
        ({"": "max 100000"}, MOST_THREADS),
        ({"": "200000 100000"}, 2),
        ({"": "150000 100000"}, 2),
        ({"": "1000 100000"}, 1),
        ({"": "max 100000", "a": "400000 100000", "a/b": "300000 100000"}, 3),
        ({"": "100000 100000", "a/b": "300000 100000"}, 1),
        ({"": "100000 0", "a": "damaged"}, MOST_THREADS),
    ],
)
def test_a_container_s_quota_limits_the_cores(tmp_path: Path, quotas: dict[str, str], cores: int) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    for group, quota in quotas.items():
        (tmp_path / group / "cpu.max").write_text(f"{quota}\n")
    (tmp_path / "own").write_text("0::/a/b\n")
    assert cpu_quota(tmp_path, tmp_path / "own") == cores
    assert cpu_quota(tmp_path / "nowhere", tmp_path / "nothing") == MOST_THREADS
