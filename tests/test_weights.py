"""Names of networks that come with the package, wherever weights are asked for."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from tests.mistakes import unknown_name

import spikformer as sf
from spikformer.data import open_dataset
from spikformer.weights import FOLDER, find_weights, is_shipped

KIND = "file, folder or shipped network"
LOGITS = Path(__file__).with_name("weights_logits.json")
SHARED = Path(__file__).parents[2] / "shared" / "data"
FILES = {
    "cifar10": SHARED,
    "event_folder": SHARED / "dvs128-objects",
    "fashion_mnist": Path("/usr/share/datasets/fashion-mnist"),  # Debian's dataset-fashion-mnist
}


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


def trained_on(*data_sets: str) -> list[str]:
    return [name for name in sf.list_weights() if sf.load(name).card.data_set in data_sets]


@pytest.mark.parametrize("name", trained_on("digits", "digits_dvs"))
def test_the_accuracy_is_that_of_the_card(name: str) -> None:
    found = sf.evaluate(name)
    assert found.top1 == pytest.approx(value(name, "accuracy"), abs=0.003)  # rounding may turn one of 359 answers
    assert found.after_steps[0] == pytest.approx(value(name, "accuracy_after_step_1"), abs=0.003)


@pytest.mark.parametrize("name", trained_on(*FILES))
def test_the_accuracy_on_files_is_that_of_the_card(name: str) -> None:
    where = FILES[str(sf.load(name).card.data_set)]
    if not where.exists():
        pytest.skip(f"the files that {name} was trained on are not on this machine")
    share = value(name, "accuracy")
    found = sf.evaluate(name, data=where, max_samples=400)
    assert found.top1 == pytest.approx(share, abs=4 * (share * (1 - share) / 400) ** 0.5)  # four deviations


def test_every_network_is_checked_on_its_data() -> None:
    assert set(sf.list_weights()) == {*trained_on("digits", "digits_dvs"), *trained_on(*FILES)}


def logits_of_a_pattern(name: str) -> list[float]:
    """Logits in float64 of an input made of integers: they change only with the weights or the arithmetic."""
    model = sf.load(name, dtype=torch.float64)
    height, width = model.config.image_size
    frames = (model.config.time_steps,) if model.card.preprocessing.events else ()
    shape = (*frames, 1, model.config.in_channels, height, width)
    places = torch.arange(math.prod(shape))
    with torch.no_grad():
        return model(((places * places * 40503 >> 5) % 256).double().view(shape) / 64 - 1)[0].tolist()


@pytest.mark.parametrize("name", sf.list_weights())
def test_the_logits_are_those_that_were_recorded(name: str) -> None:
    """After retraining a network: `python -m tests.test_weights > tests/weights_logits.json`."""
    assert logits_of_a_pattern(name) == pytest.approx(json.loads(LOGITS.read_text())[name], abs=1e-9)


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


if __name__ == "__main__":
    print(json.dumps({name: logits_of_a_pattern(name) for name in sf.list_weights()}, indent=1))
