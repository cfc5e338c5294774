"""The folder of a run: what is in it, and what is never lost or half written."""

import csv
import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import spikformer as sf
from spikformer.data import open_dataset
from spikformer.io import TEMP_SUFFIX
from spikformer.models import Spikformer, load
from spikformer.runs.folder import Checkpoint, Results, Run
from spikformer.runs.writer import RunWriter
from spikformer.training import get_recipe
from spikformer.training.optimisers import build_optimiser
from spikformer.training.state import Progress, save_state

RECIPE = get_recipe("spikformer_tiny_digits")
DIGITS = open_dataset("digits")
ROWS = [{"epoch": 1, "train_loss": 0.1 + 0.2, "seconds": 1.5}, {"epoch": 2, "train_loss": 1e-9, "seconds": 3.0}]


@pytest.fixture
def folder(tmp_path: Path) -> RunWriter:
    made = RunWriter(tmp_path / "runs" / "first")
    made.open_new()
    return made


def names_in(path: Path) -> list[str]:
    """What is there, but for the claim, which lives as long as the folder's object."""
    return sorted(set(os.listdir(path)) - {".claim"})


def keep_state(folder: RunWriter, iteration: int = 0) -> None:
    model = sf.create_model("spikformer_tiny_digits")
    save_state(
        folder.state, RECIPE.to_dict(), Progress(iteration=iteration), model, build_optimiser(model, 0.0), None, None
    )


def test_it_is_made_with_its_parents_and_holds_what_was_asked_for(folder: RunWriter, tmp_path: Path) -> None:
    folder.describe(RECIPE, "spikformer_tiny_digits", tmp_path / "data", DIGITS)
    assert names_in(folder.path) == ["environment.json", "recipe.json"]
    description = folder.description
    assert (description.recipe, description.data) == ("spikformer_tiny_digits", str(tmp_path / "data"))
    assert folder.recipe == RECIPE
    assert description.settings["seed"] == RECIPE.seed


def test_embedded_data_have_no_folder(folder: RunWriter) -> None:
    folder.describe(RECIPE, "spikformer_tiny_digits", None, DIGITS)
    assert folder.description.data is None


def test_the_environment_tells_versions_machine_and_command(folder: RunWriter) -> None:
    folder.describe(RECIPE, "spikformer_tiny_digits", None, DIGITS)
    environment = json.loads((folder.path / "environment.json").read_text())
    assert environment["spikformer"] == sf.__version__
    assert environment["torch"] == torch.__version__
    assert environment["command"][1:] == sys.argv[1:]
    assert {"python", "numpy", "lightning_fabric", "platform", "processors", "threads", "devices"} <= environment.keys()
    assert environment["started"][:2] == "20"


def test_an_epoch_leaves_weights_and_metrics(folder: RunWriter) -> None:
    first, second = (sf.create_model("spikformer_tiny_digits") for _ in range(2))
    folder.keep(first, ROWS[:1], best=True)
    folder.keep(second, ROWS, best=False)
    assert names_in(folder.path) == ["best.safetensors", "last.safetensors", "metrics.csv"]
    assert torch.equal(load(folder.best).head.weight, first.head.weight)
    assert torch.equal(load(folder.last).head.weight, second.head.weight)
    with folder.metrics_file.open(newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert rows == ROWS, "to the bit"


def describe(folder: RunWriter) -> None:
    folder.describe(RECIPE, "spikformer_tiny_digits", None, DIGITS)


def test_a_folder_that_holds_a_run_is_refused(folder: RunWriter) -> None:
    describe(folder)
    keep_state(folder)
    with pytest.raises(ValueError, match=r"first has a run already; add --resume"):
        folder.open_new()


def test_weights_without_a_state_can_only_be_replaced_and_both_messages_say_so(folder: RunWriter) -> None:
    describe(folder)
    folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS, best=True)
    for begin, kind in ((folder.open_new, ValueError), (folder.check_saved, FileNotFoundError)):
        with pytest.raises(kind, match=r"no state\.safetensors to resume; add --overwrite"):
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
    with pytest.raises(ValueError, match=name.split("/", maxsplit=1)[0]):
        RunWriter(tmp_path).open_new(overwrite=overwrite)
    assert (tmp_path / name).read_text() == '{"mine": 1}'
    assert len(os.listdir(tmp_path)) == 1


def test_the_message_names_a_few_of_hundreds_of_files(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number:03}.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"000\.png, 001\.png, 002\.png and 197 more"):
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
    with pytest.raises(FileNotFoundError, match=r"state\.safetensors"):
        folder.open_saved()
    keep_state(folder, iteration=7)
    assert folder.open_saved().progress.iteration == 7
    folder.state.write_bytes(folder.state.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"state\.safetensors is truncated"):
        folder.open_saved()


@pytest.mark.parametrize(
    "content",
    [
        *(None, b"", b"{", b"[]", b"7", b"\xff\xfe", b'{"recipe": "x"}', b"[" * 100_000, b" " * 9_000_000),
        *({"data": 5}, {"settings": 3}, {"class_names": 7}, {"class_names": [7]}, {"recipe": None}, {"launch": {}}),
        *({"num_train_samples": "many"}, {"settings": {"a": json.loads("[" * 40 + "]" * 40)}}),
    ],
    ids=lambda text: str(text)[:20],
)
def test_a_damaged_description_is_said(folder: RunWriter, content: bytes | dict[str, object] | None) -> None:
    if isinstance(content, dict):
        describe(folder)
        content = json.dumps(vars(folder.description) | content).encode()
    if content is not None:
        (folder.path / "recipe.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"recipe\.json"):
        _ = folder.description


@pytest.mark.parametrize(
    "change",
    [
        *({"learning_rate": 10**400}, {"learning_rate": "0.1"}, {"epochs": 10**400}, {"data_set": ["digits"]}),
        *({"model": 5}, {"model": {}}, {"augmentation": 5}, {"augmentation": {"flip": 10**400}}, {"more": 1}),
        *({"precision": {}}, {"validation_share": None}, {"seed": True}, {"ema_decay": 10**400}),
    ],
    ids=lambda change: str(change)[:30],
)
def test_settings_that_cannot_be_are_said_with_their_file(folder: RunWriter, change: dict[str, object]) -> None:
    describe(folder)
    description = vars(folder.description)
    (folder.path / "recipe.json").write_text(json.dumps(description | {"settings": description["settings"] | change}))
    with pytest.raises(ValueError, match=r"recipe\.json"):
        _ = folder.recipe


def test_room_is_looked_for_and_no_trace_of_that_stays(folder: RunWriter) -> None:
    folder.check_room(sf.create_model("spikformer_tiny_digits"))
    assert names_in(folder.path) == []


def test_too_little_room_is_said_before_training(folder: RunWriter) -> None:
    with torch.device("meta"):
        giant = Spikformer(sf.ModelConfig(embed_dim=2**17, num_heads=2**10, depth=8))
    with pytest.raises(OSError, match=r"\d{5,}\.\d\d GB"):
        folder.check_room(giant)


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
    with pytest.raises(OSError, match="GB free"):
        folder.check_room(model)


def test_temporary_files_that_a_kill_left_make_room(folder: RunWriter) -> None:
    for name in (f".0123456789abcdef-0{TEMP_SUFFIX}", ".tmp", ".hidden", "half"):
        (folder.path / name).write_bytes(b"")
    folder.check_room(sf.create_model("spikformer_tiny_digits"))
    assert names_in(folder.path) == [".hidden", ".tmp", "half"]


def test_a_disk_that_fills_up_is_said_and_the_old_weights_stay(folder: RunWriter, full_disk) -> None:
    old, new = (sf.create_model("spikformer_tiny_digits") for _ in range(2))
    folder.keep(old, ROWS, best=True)
    with full_disk(), pytest.raises(OSError, match=r"best\.safetensors cannot be written: File too large\."):
        folder.keep(new, ROWS, best=True)
    assert torch.equal(load(folder.best).head.weight, old.head.weight)
    assert names_in(folder.path) == ["best.safetensors", "last.safetensors", "metrics.csv"]


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(
            OSError, match=r"(file|run) cannot be made: (File exists|Not a directory); choose another --output\."
        ):
            RunWriter(path).open_new()
        with pytest.raises(FileNotFoundError, match="to resume"):
            RunWriter(path).open_saved()


def test_a_folder_where_a_file_should_be(folder: RunWriter) -> None:
    folder.best.mkdir()
    with pytest.raises(IsADirectoryError, match=r"best\.safetensors is a folder"):
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
                with pytest.raises(ValueError, match=r"Another command"):
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
    assert "Another command" in other.stderr
    del folder
    assert not path.exists()


def test_going_on_is_noted_beside_how_it_began(folder: RunWriter) -> None:
    folder.describe(RECIPE, "spikformer_tiny_digits", None, DIGITS)
    path = folder.path / "environment.json"
    began = json.loads(path.read_text())
    folder.note_resumption()
    folder.note_resumption()
    noted = json.loads(path.read_text())
    assert {name: noted[name] for name in began} == began
    assert [each["torch"] for each in noted["resumed"]] == [torch.__version__] * 2
    for odd in ("[]", '{"resumed": 5}', "[" * 100_000, " " * 9_000_000):
        path.write_text(odd)
        folder.note_resumption()
        assert len(json.loads(path.read_text())["resumed"]) == 1


def test_metrics_come_back_to_the_bit(folder: RunWriter) -> None:
    rows = [ROWS[0], ROWS[1] | {"validation_accuracy": 0.5}]
    folder.keep(sf.create_model("spikformer_tiny_digits"), rows, best=True)
    assert folder.metrics == rows, "an epoch without validation has none"


def test_without_metrics_it_is_no_run_or_a_young_one(folder: RunWriter) -> None:
    with pytest.raises(FileNotFoundError, match=r"metrics\.csv"):
        _ = folder.metrics
    with pytest.raises(FileNotFoundError, match=r"metrics\.csv"):
        _ = RunWriter(folder.path / "nowhere").metrics


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"epoch,train_loss\n",
        b"epoch,train_loss\n1,much\n",
        b"epoch,train_loss\n2,0.5\n",
        b"epoch,train_loss\n1,0.5\n3,0.4\n",
        b"epoch,train_loss\n1,0.5\n2,\n",
        b"epoch,train_loss\n1,0.5,0.7\n",
        b"train_loss\n0.5\n",
        b"epoch\n1\n",
        b"epoch,train_loss\n1,0.\x00\n",
        b"epoch,train_loss,seconds\n1,0.5,inf\n",
        b"epoch,train_loss,validation_accuracy\n1,0.5,nan\n",
        b"epoch,train_loss\n1,1e308\n",
        b"\xff\xfe",
        b"epoch,train_loss\n1," + b"0" * 200_000,
        b"epoch,train_loss\n" + b"1,0.5\n" * 2_000_000,
    ],
    ids=lambda content: repr(content[-20:]),
)
def test_damaged_metrics_are_said(folder: RunWriter, content: bytes) -> None:
    folder.metrics_file.write_bytes(content)
    with pytest.raises(ValueError, match=r"metrics\.csv is damaged"):
        _ = folder.metrics


def test_a_loss_that_ran_away_is_no_damage(folder: RunWriter) -> None:
    folder.metrics_file.write_text("epoch,train_loss\n1,0.5\n2,nan\n3,inf\n")
    assert [row["train_loss"] for row in folder.metrics][::2] == [0.5, float("inf")]


def test_results_come_back_and_are_dropped_when_a_run_resumes(folder: RunWriter) -> None:
    assert folder.results is None
    results = Results(Checkpoint(2, 0.1 + 0.2, 0.9, None, 0.8), None, 3.5, 1, silent=False)
    folder.keep_results(results)
    assert Run(folder.path).results == results
    plain = folder.results_to_dict(results)
    assert plain["last"] == {
        "weights": str(folder.last),
        "epoch": 2,
        "train_loss": 0.1 + 0.2,
        "train_accuracy": 0.9,
        "test_accuracy": 0.8,
    }
    assert "best" not in plain
    folder.note_resumption()
    assert folder.results is None


_TEXTS = {"last": {"epoch": "1", "train_loss": [], "train_accuracy": 0.5}, "best": None, "seconds": 1.0}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"last": 3}',
        '{"last": {}, "best": null}',
        "[" * 100_000,
        json.dumps(_TEXTS | {"unreadable": 0, "silent": False}),
    ],
)
def test_damaged_results_raise(folder: RunWriter, content: str) -> None:
    folder.results_file.write_text(content)
    with pytest.raises(ValueError, match=r"results\.json"):
        _ = folder.results


def test_weights_are_the_best_or_the_last(folder: RunWriter) -> None:
    with pytest.raises(FileNotFoundError):
        _ = folder.weights
    folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS[:1], best=False)
    assert folder.weights == folder.last
    folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS, best=True)
    assert folder.weights == folder.best
