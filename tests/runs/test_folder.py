"""The folder of a run: what is in it, and how it comes back."""

import csv
import json
import sys
from pathlib import Path

import pytest
import torch
from tests.mistakes import file_error, mistake
from tests.runs.folders import DIGITS, RECIPE, ROWS, describe, names_in

import spikformer as sf
from spikformer.models import load
from spikformer.runs.folder import Checkpoint, Results, Run
from spikformer.runs.writer import RunWriter


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
    with file_error(folder.path / "recipe.json"):
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
    with file_error(folder.path / "recipe.json", "unsupported"):
        _ = folder.recipe


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
    with mistake(FileNotFoundError, folder.path, "metrics.csv"):
        _ = folder.metrics
    with mistake(FileNotFoundError, folder.path / "nowhere", "metrics.csv"):
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
    with file_error(folder.metrics_file):
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
    with file_error(folder.results_file):
        _ = folder.results


def test_weights_are_the_best_or_the_last(folder: RunWriter) -> None:
    with pytest.raises(FileNotFoundError):
        _ = folder.weights
    folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS[:1], best=False)
    assert folder.weights == folder.last
    folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS, best=True)
    assert folder.weights == folder.best
