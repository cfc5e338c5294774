"""Files on disk: the whole of one or nothing."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mistakes import mistake

from spikformer.io import TEMP_SUFFIX, atomic_file, check_is_file, write_atomically

pytestmark = pytest.mark.core

WRITE = """
import os, signal, sys
from pathlib import Path
from spikformer.io import atomic_file, write_atomically
"""


def run(code: str, path: Path) -> int:
    return subprocess.run([sys.executable, "-c", WRITE + code, str(path)], check=False).returncode


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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
    with mistake(type(failure), *((path, failure.args[1]) if failure.args else ())):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


KILLED = "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\nwrite_atomically(Path(sys.argv[1]), b'new')"


def test_a_kill_leaves_the_old_file_and_the_next_write_removes_what_else_it_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    assert run(KILLED, path) == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    (left,) = set(os.listdir(tmp_path)) - {"file"}
    assert left.startswith(".")
    assert left.endswith(TEMP_SUFFIX)
    write_atomically(tmp_path / "other", b"1")
    assert left in os.listdir(tmp_path), "it belongs to another path"
    write_atomically(path, b"newer")
    assert sorted(os.listdir(tmp_path)) == ["file", "other"]


def test_several_kills_at_a_time_leave_nothing_for_long(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_file(path) as file:  # a live writer, so that the killed one takes another name
        assert run(KILLED, path) == -signal.SIGKILL
        assert len(os.listdir(tmp_path)) == 2
        file.write(b"mine")
    assert os.listdir(tmp_path) == ["file"]
    assert path.read_bytes() == b"mine"


def test_writers_at_a_time_do_not_touch_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_file(path) as first:
        first.write(b"first")
        assert run("write_atomically(Path(sys.argv[1]), b'child')", path) == 0
        assert path.read_bytes() == b"child"
        with atomic_file(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]


CROWDED = """
path = Path(sys.argv[1])
for number in range(800):
    try:
        with atomic_file(path, durable=False) as file:
            file.write(bytes([number % 251]) * 100)
            if number % 3 == 1:
                raise InterruptedError(4, "on purpose")
    except InterruptedError:
        pass
write_atomically(path, b"last", durable=False)
"""


def test_many_writers_that_fail_at_times_leave_one_whole_file(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITE + CROWDED, str(tmp_path / "file")]
    writers = [subprocess.Popen(words) for _ in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0], "nobody removed what another was writing"
    assert (tmp_path / "file").read_bytes() == b"last"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path, mask: int) -> None:
    code = f"os.umask({mask}); write_atomically(Path(sys.argv[1]), b'')"
    assert run(code, tmp_path / "file") == 0
    assert mode_of(tmp_path / "file") == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert mode_of(path) == mode
    assert path.read_bytes() == b"new"


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(Path("elsewhere") / "target")
    for content in (b"made", b"replaced"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert os.listdir(target.parent) == ["target"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with mistake(OSError, loop, os.strerror(errno.ELOOP)):
        write_atomically(loop, b"")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "file")
    with mistake(FileNotFoundError, tmp_path / "nowhere", "file"):
        write_atomically(tmp_path / "dangling", b"")


def test_what_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with mistake(OSError, tmp_path / "pipe"):
        write_atomically(tmp_path / "pipe", b"")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("durable", [True, False])
def test_file_and_folder_reach_the_disk_in_that_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noting(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noting)
    write_atomically(tmp_path / "file", b"new", durable=durable)
    if not durable:
        assert synced == []
        return
    temp, folder = synced
    assert temp.endswith(TEMP_SUFFIX)
    assert folder == str(tmp_path.resolve())


def test_an_unwritable_folder_is_an_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A superuser may write anywhere, so the mode of a folder proves nothing.
    def deny(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", deny)
    with mistake(PermissionError, tmp_path / "file", "Permission denied"):
        write_atomically(tmp_path / "file", b"new")


def test_a_folder_instead_of_a_file_names_the_weights_in_it(tmp_path: Path) -> None:
    for name in ("state", "last", "best"):
        (tmp_path / f"{name}.safetensors").touch()
    with pytest.raises(IsADirectoryError) as raised:
        check_is_file(tmp_path)
    assert str(tmp_path / "best.safetensors") in str(raised.value)
