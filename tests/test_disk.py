"""Files on disk: the whole of one or nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spikformer.disk import write_atomically


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, step: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(failure), match="file cannot be written: No space" if failure.args else None):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_kill_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import os, signal, sys; from pathlib import Path; from spikformer.disk import write_atomically\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(Path(sys.argv[1]), b'new')"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert result.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert all(name.startswith(".") for name in os.listdir(tmp_path) if name != "file")


def test_an_unwritable_folder_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A superuser may write anywhere, so the mode of a folder proves nothing.
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"^\S+file cannot be written: Permission denied\.$"):
        write_atomically(tmp_path / "file", b"new")
