"""Cells side by side: what each may use of the machine, and whose folder it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spikformer.cli.ablation.pool import locked, shares


def test_processors_are_shared_unless_somebody_has_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert shares(0, 1) == {}
    assert shares(0, 3)["OMP_NUM_THREADS"] == "2"
    assert shares(0, 9)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert "OMP_NUM_THREADS" not in shares(0, 3)


def test_each_has_a_gpu_of_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert [shares(slot, 3)["CUDA_VISIBLE_DEVICES"] for slot in range(3)] == ["3", "5", "3"]
    assert "CUDA_VISIBLE_DEVICES" not in shares(0, 1), "one cell at a time has them all"


def test_a_folder_is_for_one_command_and_free_when_it_ends(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "new"),
        pytest.raises(ValueError, match=rf"Another command \(process {os.getpid()}\) is at work in"),
        locked(tmp_path / "new"),
    ):
        pass
    with locked(tmp_path / "new"):
        pass


def test_what_a_dead_command_left_behind_is_waited_for(tmp_path: Path) -> None:
    """A cell holds the folder of the command that started it, and ends a little after it."""
    cell = "import sys, time, pathlib; time.sleep(1); pathlib.Path(sys.argv[1], 'saved').touch()"
    command = (
        "import os, subprocess, sys; from pathlib import Path; from spikformer.cli.ablation.pool import locked\n"
        "with locked(Path(sys.argv[1])) as lock:\n"
        "    subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1]], pass_fds=[lock.fileno()])\n"
        "    os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", command, tmp_path, cell], check=True)
    with locked(tmp_path):
        assert (tmp_path / "saved").exists()
