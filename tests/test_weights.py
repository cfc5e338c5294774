"""Names of networks that come with the package, wherever weights are asked for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from tests.mistakes import unknown_name

import spikformer as sf
from spikformer.data import open_dataset
from spikformer.weights import FOLDER, find_weights, is_shipped

KIND = "file, folder or shipped network"


@pytest.mark.parametrize("path", ["net.safetensors", "./net", "runs/net", "/net", "net/", ".", ".."])
def test_a_separator_or_a_suffix_makes_a_path(path: str) -> None:
    assert find_weights(path) == Path(path)


def test_names_that_are_there_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net").mkdir()
    assert find_weights("net") == Path("net")
    assert not is_shipped(Path("net"))


@pytest.mark.parametrize(
    "call", [find_weights, sf.load, sf.compile_engine, sf.evaluate], ids=lambda call: call.__name__
)
def test_unknown_names(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with unknown_name(KIND, "nowhere"):
        call("nowhere")


@pytest.mark.parametrize("name", sf.list_weights())
def test_a_shipped_name_wins(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    assert find_weights(name) == FOLDER / f"{name}.safetensors"
    assert is_shipped(find_weights(name))
    assert find_weights(f".{os.sep}{name}") == Path(name)


def value(name: str, metric: str) -> float:
    card = sf.load(name).card
    return next(result.value for result in card.results if result.metric == metric and result.split == "test")


@pytest.mark.parametrize("name", [name for name in sf.list_weights() if name.startswith("digits")])
def test_the_accuracy_is_that_of_the_card(name: str) -> None:
    found = sf.evaluate(name)
    assert found.top1 == pytest.approx(value(name, "accuracy"), abs=0.003)  # rounding may turn one of 359 answers
    assert found.after_steps[0] == pytest.approx(value(name, "accuracy_after_step_1"), abs=0.003)


PREDICT = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoTorch())
from spikformer.cli import main
sys.exit(main(["predict", "digits", sys.argv[1], "--json"]))
"""


def test_a_name_predicts_without_torch(tmp_path: Path) -> None:
    data = open_dataset("digits")
    picture, label = data.test[2], int(data.test.labels[2])
    Image.fromarray(picture[0]).save(tmp_path / "digit.png")
    words = [sys.executable, "-c", PREDICT, tmp_path / "digit.png"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)
    assert answer["classes"][0]["class"] == str(label)
    assert [path.name for path in tmp_path.iterdir()] == ["digit.png"]


def test_all_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.safetensors")) < 12e6
