"""What a command needs of its process: a folder for itself, signals that stop it, its share of the machine."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.mistakes import file_error

from spikformer.runs.ablation import cell_resources
from spikformer.runs.process import FolderLock, stop_on_signal

HOLD = """
import sys, time
from pathlib import Path
from spikformer.runs.process import FolderLock
lock = FolderLock(Path(sys.argv[1]))
lock.acquire()
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
"""


def hold(folder: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(folder), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_folder_is_for_one_process_and_free_when_it_ends(tmp_path: Path) -> None:
    with hold(tmp_path, 60) as other:
        try:
            with file_error(tmp_path, "busy"):
                FolderLock(tmp_path).acquire()
        finally:
            other.kill()
    lock = FolderLock(tmp_path)
    lock.acquire()
    assert lock.path.exists()
    lock.release()
    assert not lock.path.exists()


def test_a_process_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    with hold(tmp_path, 0.5):
        started = time.monotonic()
        lock = FolderLock(tmp_path)
        lock.acquire(wait_seconds=30)
        assert time.monotonic() - started > 0.1
        lock.release()


def test_processors_are_shared_unless_the_user_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert cell_resources(0, 1) == (None, None)
    assert cell_resources(0, 3)[0] == 2
    assert cell_resources(0, 9)[0] == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert cell_resources(0, 3)[0] is None


def test_each_cell_has_one_of_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert [cell_resources(slot, 3)[1] for slot in range(3)] == ["3", "5", "3"]
    assert cell_resources(0, 1)[1] is None, "one cell at a time has them all"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_asks_to_stop_and_a_second_one_is_as_before(number: signal.Signals) -> None:
    seen = []
    before = signal.signal(number, lambda *_: seen.append(number))
    try:
        with stop_on_signal() as stop:
            assert not stop()
            os.kill(os.getpid(), number)
            assert stop()
            assert not seen
            os.kill(os.getpid(), number)
            assert seen == [number]
        os.kill(os.getpid(), number)
        assert seen == [number] * 2
    finally:
        signal.signal(number, before)


def test_a_run_under_nohup_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_are_never_stopped() -> None:
    found = []

    def run() -> None:
        with stop_on_signal() as stop:
            found.append(stop())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]
