"""The folder of a run while it is trained: who may write to it, and what is never lost or half written."""

import errno
import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.mistakes import file_error, mistake
from tests.runs.folders import ROWS, describe, keep_state, names_in

import spikformer as sf
from spikformer.io import TEMP_SUFFIX
from spikformer.models import Spikformer, load
from spikformer.runs.writer import RunWriter


def test_a_folder_that_holds_a_run_raises(folder: RunWriter) -> None:
    describe(folder)
    keep_state(folder)
    with file_error(folder.path, "unfit", "--resume", "--overwrite"):
        folder.open_new()


def test_weights_without_a_state_can_only_be_replaced_and_both_messages_say_so(folder: RunWriter) -> None:
    describe(folder)
    folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS, best=True)
    for begin, kind in ((folder.open_new, ValueError), (folder.check_saved, FileNotFoundError)):
        with mistake(kind, folder.state.name, "--overwrite"):
            begin()
    folder.open_new(overwrite=True)
    assert names_in(folder.path) == ["environment.json", "recipe.json"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "name", ["metrics.csv", "recipe.json", "curves.png", "last.safetensors", "environment.json", "cat/1.png"]
)
def test_files_of_the_users_own_are_never_touched(tmp_path: Path, name: str, overwrite: bool) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('{"mine": 1}')
    with file_error(tmp_path, "unfit", name.split("/", maxsplit=1)[0]):
        RunWriter(tmp_path).open_new(overwrite=overwrite)
    assert (tmp_path / name).read_text() == '{"mine": 1}'
    assert len(os.listdir(tmp_path)) == 1


def test_the_message_names_a_few_of_hundreds_of_files(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number:03}.png").write_bytes(b"")
    with file_error(tmp_path, "unfit", "000.png", "002.png", 197):
        RunWriter(tmp_path).open_new()


def test_what_a_start_that_was_killed_left_is_no_obstacle(tmp_path: Path) -> None:
    first = RunWriter(tmp_path)
    first.open_new()
    describe(first)
    for name in ("log.txt", ".0123456789abcdef.half", ".gitignore"):
        (tmp_path / name).write_text("")
    RunWriter(tmp_path).open_new()
    (tmp_path / "recipe.json").unlink()
    (tmp_path / "environment.json").unlink()
    RunWriter(tmp_path).open_new()
    assert (tmp_path / "log.txt").exists()


def test_overwriting_removes_what_a_run_writes_and_no_more(folder: RunWriter) -> None:
    describe(folder)
    folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS, best=True)
    keep_state(folder)
    folder.curves.write_bytes(b"")
    (folder.path / "tensorboard").mkdir()
    (folder.path / "tensorboard" / "events.out.tfevents.1.host").write_bytes(b"")
    (folder.path / "notes.txt").write_text("mine")
    (folder.path / "more").mkdir()
    (folder.path / "more" / "last.safetensors").write_bytes(b"mine, too")
    folder.open_new(overwrite=True)
    assert names_in(folder.path) == ["environment.json", "more", "notes.txt", "recipe.json"]
    assert os.listdir(folder.path / "more") == ["last.safetensors"]
    (folder.path / "tensorboard").mkdir()
    (folder.path / "tensorboard" / "mine.txt").write_bytes(b"")
    folder.open_new(overwrite=True)
    assert os.listdir(folder.path / "tensorboard") == ["mine.txt"]


def test_overwriting_nothing_is_starting(tmp_path: Path) -> None:
    RunWriter(tmp_path / "new").open_new(overwrite=True)
    assert os.listdir(tmp_path) == ["new"]


def test_the_state_comes_back_and_without_one_there_is_nothing_to_resume(folder: RunWriter) -> None:
    with mistake(FileNotFoundError, folder.state.name):
        folder.open_saved()
    keep_state(folder, iteration=7)
    assert folder.open_saved().progress.iteration == 7
    folder.state.write_bytes(folder.state.read_bytes()[:1000])
    with file_error(folder.state):
        folder.open_saved()


def test_room_is_looked_for_and_no_trace_of_that_stays(folder: RunWriter) -> None:
    folder.check_room(sf.create_model("spikformer_tiny_digits"))
    assert names_in(folder.path) == []


def test_too_little_room_is_said_before_training(folder: RunWriter) -> None:
    with torch.device("meta"):
        giant = Spikformer(sf.ModelConfig(embed_dim=2**17, num_heads=2**10, depth=8))
    with mistake(OSError, folder.path) as caught:
        folder.check_room(giant)
    assert re.search(r"\d{5,}\.\d\d GB", str(caught.value))


def test_what_a_run_has_written_needs_no_room_again(folder: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts in just enough room, writes its files into that, and can be resumed in what is left."""
    model = sf.create_model("spikformer_tiny_digits")
    size = sum(tensor.nbytes for tensor in model.state_dict().values())
    free = 10 * size
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(0, 0, free))
    folder.check_room(model)
    folder.keep(model, ROWS, best=True)
    keep_state(folder)
    free -= sum(path.stat().st_size for path in (folder.state, folder.last, folder.best))
    assert free < 8 * size
    folder.check_room(model)
    free -= size
    with mistake(OSError, folder.path):
        folder.check_room(model)


def test_temporary_files_that_a_kill_left_make_room(folder: RunWriter) -> None:
    for name in (f".0123456789abcdef-0{TEMP_SUFFIX}", ".tmp", ".hidden", "half"):
        (folder.path / name).write_bytes(b"")
    folder.check_room(sf.create_model("spikformer_tiny_digits"))
    assert names_in(folder.path) == [".hidden", ".tmp", "half"]


def test_a_disk_that_fills_up_is_said_and_the_old_weights_stay(folder: RunWriter, full_disk) -> None:
    old, new = (sf.create_model("spikformer_tiny_digits") for _ in range(2))
    folder.keep(old, ROWS, best=True)
    with full_disk(), mistake(OSError, folder.best, os.strerror(errno.EFBIG)):
        folder.keep(new, ROWS, best=True)
    assert torch.equal(load(folder.best).head.weight, old.head.weight)
    assert names_in(folder.path) == ["best.safetensors", "last.safetensors", "metrics.csv"]


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with mistake(OSError, path, "--output"):
            RunWriter(path).open_new()
        with mistake(FileNotFoundError, path, "state.safetensors"):
            RunWriter(path).open_saved()


def test_a_folder_where_a_file_should_be(folder: RunWriter) -> None:
    folder.best.mkdir()
    with mistake(IsADirectoryError, folder.best):
        folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS, best=True)
    assert not folder.last.exists()


CLAIM = """
import sys, time
from pathlib import Path
from spikformer.runs.writer import RunWriter
folder = RunWriter(Path(sys.argv[1]))
folder.open_new()
print("claimed", flush=True)
time.sleep(60)
"""


def test_a_folder_belongs_to_one_command_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", CLAIM, path], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "claimed\n"
            for begin in (RunWriter(path).open_new, RunWriter(path).claim):
                with file_error(path, "busy"):
                    begin()
        finally:
            other.kill()
    RunWriter(path).open_new()
    assert os.listdir(path) == [], "the claim goes with its object"


def test_a_claim_that_was_given_up_meanwhile_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our opening the file and locking it, another command ends, and removes it."""
    real, path = fcntl.lockf, tmp_path / ".claim"

    def lock_late(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "lockf", real)
        path.unlink()
        real(file, how)

    monkeypatch.setattr(fcntl, "lockf", lock_late)
    folder = RunWriter(tmp_path)
    folder.claim()
    assert path.exists()
    code = "import sys; from pathlib import Path; from spikformer.runs.writer import RunWriter; "
    code += "RunWriter(Path(sys.argv[1])).claim()"
    other = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert "FileError" in other.stderr
    del folder
    assert not path.exists()
